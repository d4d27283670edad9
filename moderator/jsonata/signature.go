package jsonata

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/moderator/jsonata/syntax"
)

// function is a function as a value.
type function struct {
	name   string // "$sum", "" if it is written in the expression
	params []syntax.Param
	// free takes any arguments as they come.
	free bool
	// takes is how many arguments a function that calls it for each item gives it.
	takes int
	run   func(*call) (any, error)
	regex *syntax.Regex // that it searches for, nil if it is no regular expression
	// hidden in a result instead of being a mistake in it.
	hidden bool
}

// label names the function in messages about its arguments.
func (f *function) label() string { return cmp.Or(f.name, "the function") }

// arity is how few and how many arguments fit; most is -1 without an end.
func (f *function) arity() (least, most int) {
	for _, p := range f.params {
		if !p.Optional && !p.Context {
			least++
		}
		if p.Many || most < 0 {
			most = -1
			continue
		}
		most++
	}
	return least, most
}

// takesContext tells whether a call with so many arguments uses the context.
func (f *function) takesContext(args int) bool {
	for _, p := range f.params {
		if p.Context {
			return args < len(f.params)
		}
	}
	return false
}

// matcher assigns arguments to parameters like a regular expression over
// their kinds.
type matcher struct {
	site   site
	params []syntax.Param
	kinds  []byte // of the arguments
	counts []int  // arguments of each parameter
	// furthest argument that no parameter took, and the parameter that was
	// tried first for it (len(params) if none was left)
	arg, param int
	err        error // a bound was reached: there may be many ways to try
}

func (m *matcher) match(param, arg int) bool {
	if m.err = m.site.spend(1); m.err != nil {
		return false
	}
	if arg > m.arg {
		m.arg, m.param = arg, param
	}
	if param == len(m.params) {
		return arg == len(m.kinds)
	}
	p := m.params[param]
	n := 0
	for arg+n < len(m.kinds) && strings.IndexByte(p.Kinds, m.kinds[arg+n]) >= 0 && (n == 0 || p.Many) {
		n++
	}
	least := 1
	if p.Optional || p.Context {
		least = 0
	}
	for ; n >= least; n-- {
		m.counts[param] = n
		if m.match(param+1, arg+n) || m.err != nil {
			return m.err == nil
		}
	}
	return false
}

// bind gives the function's parameters their arguments.
func (c *call) bind(f *function, args []any, context any) error {
	m := &matcher{site: c.site, params: f.params, kinds: make([]byte, len(args)), counts: make([]int, len(f.params)), arg: -1}
	for i, a := range args {
		m.kinds[i] = kindOf(a)
	}
	if !m.match(0, 0) {
		if m.err != nil {
			return m.err
		}
		return c.mismatch(m, args)
	}
	c.args = make([]any, 0, len(f.params))
	next := 0
	for i, p := range f.params {
		if m.counts[i] == 0 {
			arg, err := c.absent(p, len(c.args), context)
			if err != nil {
				return err
			}
			c.args = append(c.args, arg)
		}
		for range m.counts[i] {
			arg, err := c.asArray(p, args[next], next)
			if err != nil {
				return err
			}
			c.args = append(c.args, arg)
			next++
		}
	}
	return nil
}

// absent is the value of a parameter without an argument.
func (c *call) absent(p syntax.Param, index int, context any) (any, error) {
	if !p.Context {
		return undefined{}, nil
	}
	if strings.IndexByte(p.Kinds, kindOf(context)) < 0 {
		return nil, c.failValue(context, "T0411", "%s without argument %d uses the context, which must be %s, not %s",
			c.token, index+1, fitting(p), describe(context))
	}
	return context, nil
}

func (c *call) asArray(p syntax.Param, arg any, index int) (any, error) {
	if _, missing := arg.(undefined); missing || !p.Array {
		return arg, nil
	}
	l, isArray := listOf(arg)
	if !isArray {
		l = list{vals: []any{arg}}
	}
	if p.Item != 0 {
		if err := c.spend(l.len()); err != nil {
			return nil, err
		}
		for i := range l.len() {
			if kindOf(l.item(i)) != p.Item {
				return nil, c.failValue(arg, "T0412", "argument %d of %s must be an array of %ss, not %s",
					index+1, c.token, kindName(p.Item), describe(l.item(i)))
			}
		}
	}
	if isArray {
		return arg, nil
	}
	return &l, nil
}

// mismatch says which argument does not fit.
func (c *call) mismatch(m *matcher, args []any) error {
	switch {
	case m.arg == len(args):
		return c.fail("T0410", "%s needs an argument %d: %s", c.token, m.arg+1, fitting(m.params[m.param]))
	case m.param == len(m.params):
		return c.failValue(args[m.arg], "T0410", "%s has no argument %d", c.token, m.arg+1)
	}
	return c.failValue(args[m.arg], "T0410", "argument %d of %s must be %s, not %s",
		m.arg+1, c.token, fitting(m.params[m.param]), describe(args[m.arg]))
}

// fitting names what fits, as in "a string or a number".
func fitting(p syntax.Param) string {
	if p.Array {
		return "an array"
	}
	var names []string
	for _, k := range []byte(strings.TrimSuffix(p.Kinds, "m")) {
		names = append(names, withArticle(kindName(k)))
	}
	switch {
	case len(p.Kinds) > 6:
		return "any value"
	case len(names) > 1:
		last := len(names) - 1
		return fmt.Sprintf("%s or %s", strings.Join(names[:last], ", "), names[last])
	}
	return names[0]
}
