// Package confine keeps a command from writing outside a few directories, with
// Landlock, where the kernel is a Linux that has it.
//
// Landlock binds the process that asks for it for good. So the agent starts its
// own program a second time, with a first argument that nobody types; that
// process binds itself and becomes the command (bind.Dispatch, which a main has to
// call first). What the command starts is bound too. Package bind stands apart
// because its library brings C along, which is loaded at every start.
//
// A bound command can read what the user can, and use the network. It cannot
// write, make, rename or remove anything outside its directories, nor gain
// rights (sudo does not work), nor look into processes that are not its own, so
// that the keys in the agent's environment stay there; from Landlock 6 on it
// cannot signal such processes either.
package confine

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/util/proc"
)

// Argument is the hidden first argument.
const Argument = "__confined"

// Mark is the variable of a process that was started to confine itself. A
// program that ignores its first argument would start itself again and again:
// one that is marked starts no other ([Command] refuses).
const Mark = "UWF_CONFINED"

const environment = Mark + "=1"

// ErrUnavailable means that commands cannot be confined here.
var ErrUnavailable = errors.New("commands cannot be confined here")

// Rules say what a command may write to. Everything may be read.
type Rules struct {
	Dirs  []string `json:"dirs"` // with all that is below; what does not exist is left out
	Files []string `json:"files,omitempty"`
}

// Command returns a command that becomes c once it has bound itself. exe is a
// program whose main calls bind.Dispatch; c.Env must hold what this process has of
// the environment's mark, so that a program that does not dispatch ends here.
func Command(exe string, r Rules, c proc.Command) (proc.Command, error) {
	if exe == "" || Level() == 0 || isTest(exe) || Inherited(c.Env) {
		return proc.Command{}, ErrUnavailable
	}
	c.Env = append(slices.Clone(c.Env), environment)
	text, err := json.Marshal(r)
	if err != nil {
		return proc.Command{}, fmt.Errorf("confine: %w", err)
	}
	c.Args = append([]string{Argument, string(text), c.Path}, c.Args...)
	c.Path = exe
	return c, nil
}

// isTest tells a test's program by its name. One that does not call Dispatch
// would run its tests again, which would start it again, without end.
func isTest(exe string) bool {
	return strings.HasSuffix(strings.TrimSuffix(exe, ".exe"), ".test")
}

// Inherited tells whether an environment has the mark. What runs in it is bound
// already, unless someone else has set the variable: it is a guard, no proof.
func Inherited(environ []string) bool { return slices.Contains(environ, environment) }
