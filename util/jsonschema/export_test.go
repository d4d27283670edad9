package jsonschema

// MaxValues is the limit of a schema.
const MaxValues = maxValues

// Keywords returns the keywords allowed in a schema.
func Keywords() []string { return keywordNames() }

// MetaCheck compiles a schema with the meta-schema instead of Check.
func MetaCheck(schema any) error {
	_, err := compile(schema, false)
	return err
}
