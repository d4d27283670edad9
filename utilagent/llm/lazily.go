package llm

import (
	"regexp"
	"sync"
)

// lazily compiles an expression when it is first needed: these are about what
// goes wrong, and every program that links this package would pay for them when
// it starts.
func lazily(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
