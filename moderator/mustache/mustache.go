// Package mustache renders the templates of edges: variables, sections,
// inverted sections, comments and delimiters; no partials, no lambdas, no
// escaping. A variable that is missing is an error that names it.
package mustache
