// Package loop contains the workflow that our test tools run: the cheapest complete step, repeated.
package loop

import _ "embed"

// Workflow is the file loop.yaml.
//
//go:embed loop.yaml
var Workflow string
