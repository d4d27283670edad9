// Package threads is the command line of threads: starting, stepping, showing and keeping them.
package threads

import "github.com/united-workforce/uwf/cmd/uwf/internal/app"

// Commands are those of this package, for one invocation of the program.
type Commands struct{ *app.App }

// New returns them.
func New(a *app.App) Commands { return Commands{a} }
