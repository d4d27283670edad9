package jsonschema

// MaxValues is the limit of a schema.
const MaxValues = maxValues

// Keywords returns the keywords allowed in a schema.
func Keywords() []string { return keywordNames() }
