package jsonschema

import (
	"fmt"
	"math"
	"strconv"
)

// checkValue finds what JSON cannot say, before the library stumbles over it.
func checkValue(v any) *Problem {
	values := 0
	return measure(v, "", 0, &values)
}

// measure walks a value, counts what it holds, and reports what is no JSON
// value or nested too deep.
func measure(v any, path string, depth int, values *int) *Problem {
	*values++
	if depth > maxDepth {
		return &Problem{Message: fmt.Sprintf("nested deeper than %d", maxDepth)}
	}
	switch v := v.(type) {
	case nil, bool, string:
		return nil
	case map[string]any:
		for name, item := range v {
			if p := measure(item, path+"/"+escape(name), depth+1, values); p != nil {
				return p
			}
		}
		return nil
	case []any:
		for i, item := range v {
			if p := measure(item, path+"/"+strconv.Itoa(i), depth+1, values); p != nil {
				return p
			}
		}
		return nil
	}
	if f, ok := toFloat(v); !ok || math.IsNaN(f) || math.IsInf(f, 0) {
		return &Problem{path, fmt.Sprintf("is not a JSON value (%T %v)", v, v)}
	}
	return nil
}
