package jsonschema

import "math"

// answer is what the quick check says of a value. It is sound, not complete: when
// it is sure the library says the same, at a tenth of the cost; when it is unsure
// nothing is known. A test holds the two against each other.
type answer int8

const (
	unsure answer = iota
	fits
	fails
)

// sure makes an answer of what is certain.
func sure(ok bool) answer {
	if ok {
		return fits
	}
	return fails
}

// quick is the quick check of a schema, or of one of its keywords. It gets plain
// values only.
type quick func(v any) answer

// quickDepth is below the depth that is refused: what lies deeper is the
// library's.
const quickDepth = maxDepth / 2

// maxSafe bounds the whole numbers that a 64-bit float holds exactly, as a store
// keeps them: among these and floats, order and equality are those of floats, also
// for the library, which reckons in decimal fractions.
const maxSafe = 1<<53 - 1

// newQuick compiles a schema that [Check] has found nothing wrong with. Of a
// keyword that it does not know it is unsure.
func newQuick(schema any) quick {
	s, ok := schema.(map[string]any)
	if !ok {
		return func(any) answer { return unsure }
	}
	var all []quick
	for name, arg := range s {
		if !isNote(name) {
			all = append(all, quickKeyword(s, name, arg))
		}
	}
	return both(all)
}

// isNote reports whether a keyword asserts nothing.
func isNote(name string) bool {
	switch name {
	case "title", "description", "$comment", "default", "examples", "readOnly", "writeOnly", "deprecated":
		return true
	}
	return false
}

// quickKeyword is what one keyword of a schema demands.
func quickKeyword(s map[string]any, name string, arg any) quick {
	var q quick
	switch name {
	case "type":
		q = quickType(arg)
	case "enum":
		values, _ := arg.([]any)
		q = quickEnum(values)
	case "const":
		q = quickEnum([]any{arg})
	case "format":
		q = quickFormat(arg)
	case "pattern":
		q = quickPattern(arg)
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf":
		q = quickNumber(name, arg)
	case "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties":
		q = quickLength(name, arg)
	case "uniqueItems":
		q = quickUnique(arg)
	case "required":
		q = quickRequired(arg)
	default:
		q = quickPart(s, name, arg)
	}
	if q == nil {
		return func(any) answer { return unsure }
	}
	return q
}

// both demands everything.
func both(all []quick) quick {
	return func(v any) answer {
		result := fits
		for _, q := range all {
			switch q(v) {
			case fails:
				return fails
			case unsure:
				result = unsure
			}
		}
		return result
	}
}

// isPlain reports whether a value is made of the types that a store gives back,
// and not nested too deep. Of everything else the quick check is unsure.
func isPlain(v any, depth int) bool {
	if depth > quickDepth {
		return false
	}
	switch v := v.(type) {
	case nil, bool, string:
		return true
	case int64:
		return -maxSafe <= v && v <= maxSafe
	case float64:
		return !math.IsNaN(v) && !math.IsInf(v, 0)
	case []any:
		for _, item := range v {
			if !isPlain(item, depth+1) {
				return false
			}
		}
		return true
	case map[string]any:
		for _, item := range v {
			if !isPlain(item, depth+1) {
				return false
			}
		}
		return true
	}
	return false
}
