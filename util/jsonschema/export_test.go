package jsonschema

// MaxValues is the bound of a schema.
const MaxValues = maxValues

// Keywords are those that a schema may use.
func Keywords() []string { return keywordNames() }
