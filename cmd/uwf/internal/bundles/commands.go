// Package bundles is the command line of what leaves this home, and comes back: bundles, pages,
// seals and redactions.
package bundles

import "github.com/united-workforce/uwf/cmd/uwf/internal/app"

// Commands are those of this package, for one invocation of the program.
type Commands struct{ *app.App }

// New returns them.
func New(a *app.App) Commands { return Commands{a} }
