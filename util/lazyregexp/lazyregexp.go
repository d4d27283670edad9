// Package lazyregexp compiles regular expressions on first use: a step starts two programs,
// and each would pay for every expression that it links.
package lazyregexp

import (
	"regexp"
	"sync"
)

// New returns a function that compiles expression when it is first called. It panics if that fails.
func New(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
