// Package lazyregexp compiles regular expressions on first use. A step starts two programs, and each would
// otherwise compile every expression that it links.
package lazyregexp

import (
	"regexp"
	"sync"
)

// New returns a function that compiles expression on its first call. It panics if the expression is invalid. It
// isn't inlined, because each of some hundred variables would have three functions of its own.
//
//go:noinline
func New(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
