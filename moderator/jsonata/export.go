package jsonata

import (
	"context"
	"math"

	"github.com/united-workforce/uwf/moderator/jsonata/syntax"
)

// export turns a value into JSON values of Go. Parts of the input are left as
// they are.
func (e *evaluator) export(v any, at, depth int) (any, error) {
	if err := e.deep(at, depth); err != nil {
		return nil, err
	}
	s := e.at(at, "")
	switch v := v.(type) {
	case undefined:
		return nil, nil
	case float64:
		return s.exportNumber(v)
	case *list:
		return s.exportList(*v, depth)
	case *Object:
		return s.exportObject(v, depth)
	case *function:
		err := s.fail(syntax.CodeFunctionResult, "the result is %s, not what it gives", describe(v))
		if v.name != "" {
			err.Token, err.Hint = v.name, "write "+v.name+"(…)"
		}
		return nil, err
	}
	return v, nil
}

// exportNumber gives a whole number that is exact as an int64.
func (s site) exportNumber(f float64) (any, error) {
	switch {
	case !isFinite(f):
		return nil, s.infinite(f)
	case f == math.Trunc(f) && math.Abs(f) <= 1<<53:
		return int64(f), nil
	}
	return f, nil
}

func (s site) exportList(l list, depth int) (any, error) {
	if err := s.grow(l.len()); err != nil {
		return nil, err
	}
	if err := s.spend(l.len()); err != nil {
		return nil, err
	}
	out := make([]any, l.len())
	for i := range out {
		v, err := s.e.export(l.item(i), s.where, depth+1)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

func (s site) exportObject(o *Object, depth int) (any, error) {
	if err := s.grow(o.Len()); err != nil {
		return nil, err
	}
	if err := s.spend(stepsPerObject + o.Len()); err != nil {
		return nil, err
	}
	out := make(map[string]any, o.Len())
	for _, key := range o.keys {
		if f, ok := o.values[key].(*function); ok && f.hidden {
			continue
		}
		v, err := s.e.export(o.values[key], s.where, depth+1)
		if err != nil {
			return nil, err
		}
		out[key] = v
	}
	return out, nil
}

// excerpt is the beginning of a value as JSON, for errors. It looks only at the
// first few parts of a large one.
func excerpt(v any) string {
	if k := kindOf(v); k == 'm' || k == 'f' || k == 'u' {
		return ""
	}
	e := &evaluator{ctx: context.Background(), limits: Options{MaxSteps: 40, MaxDepth: 8, MaxItems: 1, MaxBytes: 4 * syntax.MaxShown}}
	if s, ok := v.(string); ok {
		return syntax.Quote(syntax.Shorten(s, 2*syntax.MaxShown))
	}
	text, err := e.at(0, "").json(v, "", true)
	if err != nil { // it is too large to be shown whole
		text = append(text, "…"...)
	}
	return syntax.Shorten(string(text), 2*syntax.MaxShown)
}
