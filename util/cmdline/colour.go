package cmdline

import (
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/terminal"
)

// Colours reports whether what goes to a stream may have colours: a terminal that
// is not dumb, unless NO_COLOR is set or CLICOLOR is 0; anything, if CLICOLOR_FORCE
// is set and not 0. NO_COLOR wins.
func Colours(e env.Env, stream any) bool {
	force := e.Get("CLICOLOR_FORCE")
	switch {
	case e.Get("NO_COLOR") != "":
		return false
	case force != "" && force != "0":
		return true
	}
	return terminal.Is(stream) && e.Get("CLICOLOR") != "0" && e.Get("TERM") != "dumb"
}
