package jsonschema

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Bounds of a schema, and the depth of a value. They keep the library's
// recursions and its compile time small.
const (
	maxDepth  = 100
	maxValues = 20_000
)

// Check reports everything that is not allowed in a schema: unknown keywords
// and formats, wrong types of keywords, patterns that do not compile. Path
// points into the schema. It needs no compiler.
func Check(schema any) []Problem {
	values := 0
	if p := measure(schema, "", 0, &values); p != nil {
		return []Problem{*p}
	}
	if values > maxValues {
		return []Problem{{Message: fmt.Sprintf("the schema has %d values, the limit is %d", values, maxValues)}}
	}
	var c checker
	c.schema(schema, "")
	return sorted(c.problems)
}

type checker struct{ problems []Problem }

func (c *checker) add(path, format string, args ...any) {
	c.problems = append(c.problems, Problem{path, fmt.Sprintf(format, args...)})
}

func (c *checker) schema(v any, path string) {
	m, ok := v.(map[string]any)
	if !ok {
		hint := ""
		if _, ok := v.(bool); ok {
			hint = "; write {} to accept anything, {\"not\": {}} to accept nothing"
		}
		c.add(path, "a schema must be an object, but this is %s%s", show(v), hint)
		return
	}
	for name, value := range m {
		at := path + "/" + escape(name)
		takes, known := keywords[name]
		if !known {
			c.add(at, "%s", unknown(name))
			continue
		}
		c.value(takes, value, at)
	}
}

// value checks what a keyword is given.
func (c *checker) value(t takes, v any, path string) {
	switch t {
	case takesSchema:
		c.schema(v, path)
	case takesSchemaOrBool:
		if _, ok := v.(bool); !ok {
			c.schema(v, path)
		}
	case takesSchemaList:
		c.schemaList(v, path)
	case takesSchemaMap, takesPatternMap:
		c.schemaMap(v, path, t == takesPatternMap)
	case takesType:
		c.types(v, path)
	case takesNameList:
		c.names(v, path)
	case takesFullList:
		c.values(v, path)
	default:
		if msg := scalarProblem(t, v); msg != "" {
			c.add(path, "%s", msg)
		}
	}
}

func (c *checker) schemaList(v any, path string) {
	list, ok := v.([]any)
	if !ok || len(list) == 0 {
		c.add(path, "must be a list of at least one schema, but is %s", show(v))
		return
	}
	for i, item := range list {
		c.schema(item, path+"/"+strconv.Itoa(i))
	}
}

func (c *checker) schemaMap(v any, path string, patterns bool) {
	m, ok := v.(map[string]any)
	if !ok {
		c.add(path, "must be an object of schemas, but is %s", show(v))
		return
	}
	for name, item := range m {
		at := path + "/" + escape(name)
		if patterns {
			if msg := patternProblem(name); msg != "" {
				c.add(at, "%s", msg)
			}
		}
		c.schema(item, at)
	}
}

func (c *checker) types(v any, path string) {
	list, several := v.([]any)
	if !several {
		list = []any{v}
	}
	if len(list) == 0 {
		c.add(path, "must name at least one type")
	}
	for i, item := range list {
		name, ok := item.(string)
		if !ok || !slices.Contains(types(), name) {
			c.add(path, "%s is not a type; the types are %s%s", show(item), strings.Join(types(), ", "), didYouMean(name, types()))
		}
		if slices.Contains(list[:i], item) {
			c.add(path, "%s is there twice", show(item))
		}
	}
}

func (c *checker) names(v any, path string) {
	list, ok := v.([]any)
	if !ok {
		c.add(path, "must be a list of property names, but is %s", show(v))
		return
	}
	seen := map[string]bool{}
	for i, item := range list {
		name, ok := item.(string)
		switch {
		case !ok:
			c.add(path+"/"+strconv.Itoa(i), "must be a property name, but is %s", show(item))
		case seen[name]:
			c.add(path+"/"+strconv.Itoa(i), "%s is there twice", show(name))
		}
		seen[name] = true
	}
}

// values checks a list of values, none of which may be there twice.
func (c *checker) values(v any, path string) {
	list, ok := v.([]any)
	if !ok || len(list) == 0 {
		c.add(path, "must be a list with at least one value, but is %s", show(v))
		return
	}
	seen := make(map[string]bool, len(list))
	for i, item := range list {
		key := keyOf(item)
		if seen[key] {
			c.add(path+"/"+strconv.Itoa(i), "%s is there twice", show(item))
		}
		seen[key] = true
	}
}

// scalarProblem checks the keywords that take no schemas.
func scalarProblem(t takes, v any) string {
	s, isString := v.(string)
	_, isList := v.([]any)
	_, isBool := v.(bool)
	f, isNumber := toFloat(v)
	want := ""
	switch t {
	case takesFormat:
		if isString && !slices.Contains(formats(), s) {
			return fmt.Sprintf("the format %s is not supported; the formats are %s%s", show(s), strings.Join(formats(), ", "), didYouMean(s, formats()))
		}
		want = or(isString, "a string")
	case takesPattern:
		if isString {
			return patternProblem(s)
		}
		want = "a regular expression"
	case takesString:
		want = or(isString, "a string")
	case takesNumber:
		want = or(isNumber, "a number")
	case takesPositive:
		want = or(isNumber && f > 0, "a number above 0")
	case takesNatural:
		want = or(isNumber && f >= 0 && f == math.Trunc(f) && f <= math.MaxInt32, "a whole number, at least 0")
	case takesBool:
		want = or(isBool, "true or false")
	case takesList:
		want = or(isList, "a list")
	}
	if want == "" {
		return ""
	}
	return "must be " + want + ", but is " + show(v)
}

// or returns what is wanted unless it is there.
func or(there bool, want string) string {
	if there {
		return ""
	}
	return want
}
