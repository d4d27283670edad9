package jsonschema

import (
	"maps"
	"slices"
)

// takes is what a keyword's value must be.
type takes int

const (
	takesAnything takes = iota
	takesString
	takesFormat
	takesPattern
	takesNumber
	takesPositive // a number above 0
	takesNatural  // a whole number, at least 0
	takesBool
	takesList
	takesFullList // with at least one element
	takesNameList // of different strings
	takesType     // one type or several
	takesSchema
	takesSchemaList // with at least one element
	takesSchemaMap  // from property names
	takesPatternMap // from patterns
	takesSchemaOrBool
)

// keywords are those that a schema may use.
var keywords = map[string]takes{
	"type": takesType, "enum": takesFullList, "const": takesAnything, "format": takesFormat, "pattern": takesPattern,
	"properties": takesSchemaMap, "patternProperties": takesPatternMap, "additionalProperties": takesSchemaOrBool,
	"propertyNames": takesSchema, "required": takesNameList, "minProperties": takesNatural, "maxProperties": takesNatural,
	"items": takesSchema, "contains": takesSchema, "uniqueItems": takesBool, "minItems": takesNatural, "maxItems": takesNatural,
	"anyOf": takesSchemaList, "oneOf": takesSchemaList, "allOf": takesSchemaList, "not": takesSchema,
	"if": takesSchema, "then": takesSchema, "else": takesSchema,
	"minimum": takesNumber, "maximum": takesNumber, "exclusiveMinimum": takesNumber, "exclusiveMaximum": takesNumber,
	"multipleOf": takesPositive, "minLength": takesNatural, "maxLength": takesNatural,
	"title": takesString, "description": takesString, "$comment": takesString, "default": takesAnything, "examples": takesList,
	"readOnly": takesBool, "writeOnly": takesBool, "deprecated": takesBool,
}

// keywordNames lists the keywords, sorted.
func keywordNames() []string { return slices.Sorted(maps.Keys(keywords)) }

// formats lists the formats that a schema may use, sorted. All are asserted.
// "cas_ref" is the older name of "ocas_ref": the hash of a node.
func formats() []string {
	return []string{"cas_ref", "date", "date-time", "email", "ocas_ref", "time", "uri", "uuid"}
}

// types lists the types of draft-07.
func types() []string {
	return []string{"array", "boolean", "integer", "null", "number", "object", "string"}
}
