package cmdline

import (
	"runtime/debug"

	"github.com/united-workforce/uwf/util/render"
	"github.com/united-workforce/uwf/util/terminal"
)

// Version is what "go install" stamped into the binary.
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// Format is how a result is printed: as asked for, else as text on a terminal and
// as JSON for a program.
func Format(asked string, stdout any) render.Format {
	if f, err := render.ParseFormat(asked); err == nil {
		return f
	}
	if terminal.Is(stdout) {
		return render.Text
	}
	return render.JSON
}

// CheckFormat refuses a format that there is not. None is as good as any.
func CheckFormat(asked string) error {
	if asked == "" {
		return nil
	}
	if _, err := render.ParseFormat(asked); err != nil {
		return UsageError(err.Error())
	}
	return nil
}
