// Package bind restricts the process in which it runs, for package confine.
//
//   - bind_linux.go: the order of the restrictions, and dropping root's capabilities;
//   - paths_linux.go: the Landlock rules that leave out hidden paths.
package bind

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/utilagent/confine"
)

// Dispatch handles a command line from [confine.Command] (args without the program's name): it becomes the
// command and does not return, or runs it and returns its exit status and true. For any other command line it
// returns false.
func Dispatch(args, environ []string, stderr io.Writer) (status int, dispatched bool) {
	if len(args) == 0 || args[0] != confine.Argument {
		return 0, false
	}
	err := errors.New("wrong arguments")
	var r confine.Rules
	if len(args) >= 3 {
		err = json.Unmarshal([]byte(args[1]), &r)
	}
	if err == nil {
		if err = become(r, args[2:], env.WithoutCall(environ)); err == nil {
			return 0, true // the command's exit status is reported
		}
	}
	fmt.Fprintf(stderr, "cannot sandbox the command: %v\n", err)
	return proc.InitFailed, true
}
