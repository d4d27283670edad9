// Package bind binds the process that it runs in, for package confine.
//
//   - bind_linux.go: the order in which a process gives up its rights, and what root gives up;
//   - paths_linux.go: what Landlock allows, around what is hidden.
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

// Dispatch does its part if args (without the program's name) are those of
// [confine.Command]: it becomes the command and does not return, or runs it to its end, and
// returns an exit status and true. Else it returns false.
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
			return 0, true // how the command ended is reported
		}
	}
	fmt.Fprintf(stderr, "the command could not be confined: %v\n", err)
	return proc.InitFailed, true
}
