// Package loop has the workflow that our instruments run: the cheapest step that
// is a whole one, again and again.
package loop

import _ "embed"

// Workflow is the file loop.yaml.
//
//go:embed loop.yaml
var Workflow string
