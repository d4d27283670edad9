package syntax

import "strings"

// Param is a parameter of a function. The kinds of arguments are letters, see
// [ParseSignature]; undefined ('m', missing) fits everywhere but for a function.
type Param struct {
	Kinds    string
	Item     byte // kind of the items that an array must have, 0 for any
	Array    bool // anything else becomes an array of one
	Optional bool
	Context  bool // the context stands in for it
	Many     bool // one or more
}

// ParseSignature reads JSONata's notation of parameters: s, n, b, l, o, a, f
// for one kind, x for any, j for any but functions, (sn) for a choice, a<s> for
// an array of strings; after it "?" for optional, "-" for the context, "+" for
// many. What follows ":" is the result, which nobody checks. Without a code it
// could be read, else at is where it could not.
func ParseSignature(text string) (params []Param, at int, code string) {
	for i := 0; i < len(text); i++ {
		c := text[i]
		if strings.IndexByte("?-+<", c) >= 0 && len(params) == 0 {
			return nil, i, "S0401"
		}
		switch c {
		case ':':
			return params, 0, ""
		case ' ':
		case '?':
			params[len(params)-1].Optional = true
		case '-':
			params[len(params)-1].Context = true
		case '+':
			params[len(params)-1].Many = true
		case '<':
			end := closingAngle(text, i)
			last := &params[len(params)-1]
			if end < i+2 || !last.Array && last.Kinds != "f" {
				return nil, i, "S0401"
			}
			if last.Array {
				last.Item = text[i+1]
			}
			i = end
		case 'x', 'a', 'j':
			params = append(params, Param{Kinds: "asnblom", Array: c == 'a'})
			if c != 'j' {
				params[len(params)-1].Kinds += "f"
			}
		case 'f':
			params = append(params, Param{Kinds: "f"})
		case '(':
			length := strings.IndexByte(text[i:], ')')
			if length < 2 || strings.IndexByte(text[i:i+length], '<') > 0 {
				return nil, i, "S0402"
			}
			params = append(params, Param{Kinds: text[i+1:i+length] + "m"})
			i += length
		default:
			if strings.IndexByte("snblo", c) < 0 {
				return nil, i, "S0401"
			}
			params = append(params, Param{Kinds: string(c) + "m"})
		}
	}
	return params, 0, ""
}

// closingAngle finds the ">" of the "<" at an offset, -1 if there is none.
func closingAngle(text string, at int) int {
	depth := 0
	for i := at; i < len(text); i++ {
		switch text[i] {
		case '<':
			depth++
		case '>':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}
