package jsonata

import (
	"github.com/united-workforce/uwf/moderator/internal/jsnumber"
	"github.com/united-workforce/uwf/moderator/jsonata/syntax"
)

// builtins are the functions there are: parameters as parseSignature reads
// them, and what they do. It is never changed.
var builtins = map[string]struct {
	params string
	run    func(*call) (any, error)
}{
	"string":          {"x-b?", (*call).toString},
	"length":          {"s-", (*call).length},
	"substring":       {"s-nn?", (*call).substring},
	"substringBefore": {"s-s", (*call).substringBefore},
	"substringAfter":  {"s-s", (*call).substringAfter},
	"lowercase":       {"s-", (*call).lowercase},
	"uppercase":       {"s-", (*call).uppercase},
	"trim":            {"s-", (*call).trim},
	"pad":             {"s-ns?", (*call).pad},
	"match":           {"s-fn?", (*call).match},
	"contains":        {"s-(sf)", (*call).contains},
	"split":           {"s-(sf)n?", (*call).split},
	"join":            {"a<s>s?", (*call).join},
	"replace":         {"s-(sf)(sf)n?", (*call).replace},

	"number":     {"(nsb)-", (*call).toNumber},
	"abs":        {"n-", (*call).abs},
	"floor":      {"n-", (*call).floor},
	"ceil":       {"n-", (*call).ceil},
	"round":      {"n-n?", (*call).round},
	"power":      {"n-n", (*call).power},
	"sqrt":       {"n-", (*call).sqrt},
	"formatBase": {"n-n?", (*call).formatBase},

	"sum":     {"a<n>", (*call).sum},
	"max":     {"a<n>", (*call).max},
	"min":     {"a<n>", (*call).min},
	"average": {"a<n>", (*call).average},

	"boolean": {"x-", (*call).boolean},
	"not":     {"x-", (*call).not},
	"exists":  {"x", (*call).exists},
	"type":    {"x", (*call).typeOf},
	"error":   {"s?", (*call).raise},
	"assert":  {"bs?", (*call).assert},

	"count":    {"a", (*call).count},
	"append":   {"xx", (*call).append},
	"reverse":  {"a", (*call).reverse},
	"distinct": {"x", (*call).distinct},
	"zip":      {"a+", (*call).zip},

	"map":    {"af", (*call).mapItems},
	"filter": {"af", (*call).filter},
	"single": {"af?", (*call).single},
	"reduce": {"afj?", (*call).reduce},
	"sort":   {"af?", (*call).sort},
	"each":   {"o-f", (*call).each},
	"sift":   {"o-f", (*call).sift},

	"keys":   {"x-", (*call).keys},
	"lookup": {"x-s", (*call).lookup},
	"merge":  {"a<o>", (*call).merge},
	"spread": {"x-", (*call).spread},
}

// builtin makes the value of a function, nil if there is none of the name.
func builtin(name string) *function {
	b, ok := builtins[name]
	if !ok {
		return nil
	}
	params, _, _ := syntax.ParseSignature(b.params)
	f := &function{name: "$" + name, params: params, takes: len(params), run: b.run}
	switch name {
	case "string": // $map does not give it the index as its second
		f.takes = 1
	case "append", "assert", "count", "error", "exists", "zip":
		return f
	}
	f.run = func(c *call) (any, error) {
		if c.missing(0) {
			return undefined{}, nil
		}
		return b.run(c)
	}
	return f
}

// missing tells whether an argument is undefined; without its first, most
// functions have no value either.
func (c *call) missing(i int) bool { return isUndefined(c.args[i]) }

// textArg is an argument that the signature says is a text, "" if it is absent.
func (c *call) textArg(i int) string {
	s, _ := c.args[i].(string)
	return s
}

// num is an argument that the signature says is a number, or an alternative if
// it is absent.
func (c *call) num(i int, alternative float64) float64 {
	if f, ok := jsnumber.Float(c.args[i]); ok {
		return f
	}
	return alternative
}

// made accounts for a text that a function made.
func (c *call) made(text string) (any, error) { return text, c.write(len(text)) }
