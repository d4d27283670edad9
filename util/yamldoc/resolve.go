package yamldoc

import (
	"math"
	"math/big"
	"strconv"
	"strings"
)

// resolve converts a plain scalar by the core schema of YAML 1.2, from the text as written: "no" and "1_000"
// are strings, 0123 is 123. It rejects values that JSON can't represent.
func resolve(s string) (any, string) {
	switch s {
	case "", "~", "null", "Null", "NULL":
		return nil, ""
	case "true", "True", "TRUE":
		return true, ""
	case "false", "False", "FALSE":
		return false, ""
	}
	if !strings.Contains("+-.0123456789", s[:1]) {
		return s, ""
	}
	switch strings.ToLower(strings.TrimLeft(s, "+-")) {
	case ".inf", ".nan":
		return nil, "JSON has no infinity and no NaN; put the text in quotes"
	}
	f, ok := number(s)
	if !ok {
		return s, ""
	}
	if math.IsInf(f, 0) {
		return nil, "the number is too large; put it in quotes if it is meant as text"
	}
	return normal(f), ""
}

// number parses a number of the core schema.
func number(s string) (float64, bool) {
	switch {
	case strings.HasPrefix(s, "0x"):
		return integer(s[2:], 16)
	case strings.HasPrefix(s, "0o"):
		return integer(s[2:], 8)
	case !isDecimal(s):
		return 0, false
	}
	// The only possible error is a range error, and f is then an infinity.
	f, _ := strconv.ParseFloat(s, 64)
	return f, true
}

func integer(digits string, base int) (float64, bool) {
	if digits == "" || digits[0] == '+' || digits[0] == '-' || strings.Contains(digits, "_") {
		return 0, false
	}
	n, ok := new(big.Int).SetString(digits, base)
	if !ok {
		return 0, false
	}
	f, _ := new(big.Float).SetInt(n).Float64()
	return f, true
}

// isDecimal matches [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)? .
func isDecimal(s string) bool {
	s = strings.TrimPrefix(strings.TrimPrefix(s, "+"), "-")
	s, whole := cutDigits(s)
	fraction := 0
	if rest, ok := strings.CutPrefix(s, "."); ok {
		s, fraction = cutDigits(rest)
	}
	if whole+fraction == 0 {
		return false
	}
	if s == "" {
		return true
	}
	if s[0] != 'e' && s[0] != 'E' {
		return false
	}
	s = s[1:]
	if s != "" && (s[0] == '+' || s[0] == '-') {
		s = s[1:]
	}
	s, exponent := cutDigits(s)
	return exponent > 0 && s == ""
}

// cutDigits removes the digits at the start of s and returns their number.
func cutDigits(s string) (rest string, n int) {
	rest = strings.TrimLeft(s, "0123456789")
	return rest, len(s) - len(rest)
}

// normal converts an integer to int64 if JavaScript can represent it exactly.
func normal(f float64) any {
	const maxSafe = 1<<53 - 1
	if f == math.Trunc(f) && math.Abs(f) <= maxSafe {
		return int64(f)
	}
	return f
}

// properties are the anchor and tag of a value.
type properties struct {
	anchor string // without its &
	tag    string // with its !
	pos    Pos    // of the anchor
}

func (q properties) any() bool { return q.anchor != "" || q.tag != "" }

// checkTag rejects tags that are neither local nor part of the core schema.
func checkTag(t tok) error {
	switch t.text {
	case "!", "!!str", "!!null", "!!bool", "!!int", "!!float", "!!map", "!!seq":
		return nil
	}
	if strings.ContainsAny(t.text[1:], "!<>[],\"'\t") {
		return &Error{t.pos, "this tag is not supported", t.text}
	}
	return nil
}

// isLocal reports whether a tag is a local one such as "!include", which the caller handles.
func isLocal(tag string) bool { return len(tag) > 1 && tag[1] != '!' }

// tagCollection applies the tag of its first token to a list or a mapping.
func tagCollection(n *Node, t tok) error {
	switch tag := t.props.tag; {
	case isLocal(tag):
		n.Tag = tag
	case tag == "" || tag == "!" || tag == "!!map" && n.Kind == Mapping || tag == "!!seq" && n.Kind == Sequence:
	default:
		return &Error{t.pos, "the tag does not match this value", tag}
	}
	return nil
}

// scalar converts a token to a value.
func scalar(t tok, text string) (*Node, error) {
	n := &Node{Text: text, Pos: t.pos}
	v, msg := any(text), ""
	switch tag := t.props.tag; {
	case isLocal(tag):
		n.Tag = tag
	case tag == "!" || tag == "!!str":
	case tag != "":
		v, msg = resolveAs(tag, text)
	case t.kind == tokPlain:
		v, msg = resolve(text)
	}
	if msg != "" {
		return nil, failAt(t, msg)
	}
	n.Scalar = v
	return n, nil
}

// resolveAs converts a text with a tag of the core schema.
func resolveAs(tag, text string) (any, string) {
	v, msg := resolve(text)
	fits := false
	switch v.(type) {
	case nil:
		fits = tag == "!!null"
	case bool:
		fits = tag == "!!bool"
	case int64:
		fits = tag == "!!int" || tag == "!!float"
	case float64:
		fits = tag == "!!float"
	}
	if msg == "" && !fits {
		msg = "the tag does not match this value"
	}
	return v, msg
}

// empty returns a missing value.
func empty(t tok) (*Node, error) {
	n := &Node{Pos: t.pos}
	switch tag := t.props.tag; {
	case isLocal(tag):
		n.Tag, n.Scalar = tag, ""
	case tag == "!" || tag == "!!str":
		n.Scalar = ""
	case tag != "" && tag != "!!null":
		return nil, &Error{t.pos, "the value of this tag is missing", tag}
	}
	return n, nil
}
