// Package settings is the command line of setting up: config, setup and doctor.
package settings

import "github.com/united-workforce/uwf/cmd/uwf/internal/app"

// Commands are those of this package, for one invocation of the program.
type Commands struct{ *app.App }

// New returns them.
func New(a *app.App) Commands { return Commands{a} }
