package jsonschema

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// message says what a keyword wants and what is there instead.
func message(p place) string {
	subject := "must "
	if p.name {
		subject = "the name of this property must "
	}
	limit := show(p.schema[p.keyword])
	is := ", but is " + show(p.value)
	switch p.keyword {
	case "type", "const", "enum", "format":
		return subject + "be " + wanted(map[string]any{p.keyword: p.schema[p.keyword]}) + is
	case "pattern":
		return subject + "match the pattern " + limit + is
	case "minimum":
		return subject + "be at least " + limit + is
	case "maximum":
		return subject + "be at most " + limit + is
	case "exclusiveMinimum":
		return subject + "be more than " + limit + is
	case "exclusiveMaximum":
		return subject + "be less than " + limit + is
	case "multipleOf":
		return subject + "be a multiple of " + limit + is
	case "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties":
		return subject + length(p, limit)
	case "uniqueItems":
		return subject + "not have the same item twice"
	case "not":
		return subject + "not fit " + limit
	}
	return fmt.Sprintf("does not satisfy %q", p.keyword)
}

// length says how long a value must be and how long it is.
func length(p place, limit string) string {
	bound, unit := "at least ", ""
	if strings.HasPrefix(p.keyword, "max") {
		bound = "at most "
	}
	n := 0
	switch v := p.value.(type) {
	case string:
		n, unit = utf8.RuneCountInString(v), "characters"
	case []any:
		n, unit = len(v), "items"
	case map[string]any:
		n, unit = len(v), "properties"
	}
	return fmt.Sprintf("have %s%s %s, but has %d", bound, limit, unit, n)
}

// wanted says what a schema asks for, "" if that is not simple.
func wanted(schema any) string {
	m, ok := schema.(map[string]any)
	if !ok {
		return ""
	}
	if c, ok := m["const"]; ok {
		return show(c)
	}
	if values, ok := m["enum"].([]any); ok {
		return oneOfThese(values)
	}
	if format, ok := m["format"].(string); ok {
		return formatName(format)
	}
	return typeNames(m["type"])
}

func oneOfThese(values []any) string {
	shown := make([]string, len(values))
	for i, v := range values {
		shown[i] = show(v)
	}
	if len(shown) == 1 {
		return shown[0]
	}
	return "one of " + strings.Join(shown, ", ")
}

func typeNames(t any) string {
	switch t := t.(type) {
	case string:
		return typeName(t)
	case []any:
		names := make([]string, len(t))
		for i, item := range t {
			name, _ := item.(string)
			names[i] = typeName(name)
		}
		return strings.Join(names, " or ")
	}
	return ""
}

func typeName(t string) string {
	switch t {
	case "integer":
		return "a whole number"
	case "boolean":
		return "true or false"
	case "object":
		return "an object (key: value)"
	case "array":
		return "a list"
	case "null":
		return "null"
	}
	return "a " + t
}

func formatName(format string) string {
	switch format {
	case "ocas_ref", "cas_ref":
		return "the hash of a node (13 characters, upper case)"
	case "date-time":
		return "a date and time such as 2026-01-31T12:00:00Z"
	case "date":
		return "a date such as 2026-01-31"
	case "time":
		return "a time such as 12:00:00Z"
	case "email":
		return "an email address"
	case "uri":
		return "an absolute URI such as https://example.org/"
	case "uuid":
		return "a UUID"
	}
	return format
}

func fitsPattern(schema map[string]any, name string) bool {
	patterns, _ := schema["patternProperties"].(map[string]any)
	for pattern := range patterns {
		if re, err := regexp.Compile(pattern); err == nil && re.MatchString(name) {
			return true
		}
	}
	return false
}
