package jsonschema

import (
	"sort"
)

// takes is what a keyword's value must be.
type takes int

const (
	anything takes = iota
	aString
	aFormat
	aPattern
	aNumber
	aPositive // a number above 0
	aNatural  // a whole number, at least 0
	aBool
	aList
	aFullList // with at least one element
	aNameList // of different strings
	aType     // one type or several
	aSchema
	aSchemaList // with at least one element
	aSchemaMap  // from property names
	aPatternMap // from patterns
	aSchemaOrBool
)

// keyword returns what a keyword takes, and whether there is such a keyword.
func keyword(name string) (takes, bool) {
	switch name {
	case "type":
		return aType, true
	case "properties":
		return aSchemaMap, true
	case "patternProperties":
		return aPatternMap, true
	case "additionalProperties":
		return aSchemaOrBool, true
	case "required":
		return aNameList, true
	case "items", "contains", "not", "if", "then", "else", "propertyNames":
		return aSchema, true
	case "anyOf", "oneOf", "allOf":
		return aSchemaList, true
	case "title", "description", "$comment":
		return aString, true
	case "format":
		return aFormat, true
	case "pattern":
		return aPattern, true
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
		return aNumber, true
	case "multipleOf":
		return aPositive, true
	case "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties":
		return aNatural, true
	case "uniqueItems", "readOnly", "writeOnly", "deprecated":
		return aBool, true
	case "enum":
		return aFullList, true
	case "examples":
		return aList, true
	case "const", "default":
		return anything, true
	}
	return anything, false
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

func contains(sortedList []string, s string) bool {
	i := sort.SearchStrings(sortedList, s)
	return i < len(sortedList) && sortedList[i] == s
}
