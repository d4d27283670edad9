// Package dialect is what the check of a schema and the library's judge both
// know: which keywords a schema may use and what they take, and how JSON values
// are compared, shown and pointed into.
package dialect

import "sort"

// Takes is what a keyword's value must be.
type Takes int

// What a keyword's value must be.
const (
	Anything Takes = iota
	String
	Format
	Pattern
	Number
	Positive // a number above 0
	Natural  // a whole number, at least 0
	Bool
	List
	FullList // with at least one element
	NameList // of different strings
	Type     // one type or several
	Schema
	SchemaList // with at least one element
	SchemaMap  // from property names
	PatternMap // from patterns
	SchemaOrBool
)

// Keyword returns what a keyword takes, and whether there is such a keyword.
func Keyword(name string) (Takes, bool) {
	switch name {
	case "type":
		return Type, true
	case "properties":
		return SchemaMap, true
	case "patternProperties":
		return PatternMap, true
	case "additionalProperties":
		return SchemaOrBool, true
	case "required":
		return NameList, true
	case "items", "contains", "not", "if", "then", "else", "propertyNames":
		return Schema, true
	case "anyOf", "oneOf", "allOf":
		return SchemaList, true
	case "title", "description", "$comment":
		return String, true
	case "format":
		return Format, true
	case "pattern":
		return Pattern, true
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
		return Number, true
	case "multipleOf":
		return Positive, true
	case "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties":
		return Natural, true
	case "uniqueItems", "readOnly", "writeOnly", "deprecated":
		return Bool, true
	case "enum":
		return FullList, true
	case "examples":
		return List, true
	case "const", "default":
		return Anything, true
	}
	return Anything, false
}

// Keywords lists the keywords that a schema may use, sorted.
func Keywords() []string {
	return []string{
		"$comment", "additionalProperties", "allOf", "anyOf", "const", "contains", "default", "deprecated",
		"description", "else", "enum", "examples", "exclusiveMaximum", "exclusiveMinimum", "format", "if",
		"items", "maxItems", "maxLength", "maxProperties", "maximum", "minItems", "minLength",
		"minProperties", "minimum", "multipleOf", "not", "oneOf", "pattern", "patternProperties",
		"properties", "propertyNames", "readOnly", "required", "then", "title", "type", "uniqueItems",
		"writeOnly",
	}
}

// Formats lists the formats that a schema may use, sorted. All are asserted.
// "cas_ref" is the older name of "ocas_ref": the hash of a node.
func Formats() []string {
	return []string{"cas_ref", "date", "date-time", "email", "ocas_ref", "time", "uri", "uuid"}
}

// Types lists the types of draft-07.
func Types() []string {
	return []string{"array", "boolean", "integer", "null", "number", "object", "string"}
}

// Contains reports whether a sorted list has a string.
func Contains(sortedList []string, s string) bool {
	i := sort.SearchStrings(sortedList, s)
	return i < len(sortedList) && sortedList[i] == s
}
