// Command uwf-remote-ssh connects to a remote over ssh: it runs "uwf remote serve" on the other machine, and
// is not involved in the data transfer. uwf starts it; see docs/remote-protocol.md.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/remote/helper"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/proc"
)

const name = "uwf-remote-ssh"

func main() {
	e, err := env.OS()
	if err == nil {
		err = run(e)
	}
	if ended := (*exec.ExitError)(nil); errors.As(err, &ended) { // it has printed the reason
		os.Exit(ended.ExitCode())
	}
	if err != nil {
		fmt.Fprintf(e.Stderr, "%s: %s\n", name, plaintext.Line(err.Error()))
		os.Exit(1)
	}
}

func run(e env.Env) error {
	if len(e.Args) == 1 && e.Args[0] == "--version" {
		_, err := fmt.Fprintln(e.Stdout, name, helper.Version())
		return err
	}
	if len(e.Args) != 1 || strings.HasPrefix(e.Args[0], "-") {
		return errors.New("only uwf can start this program, with the address of a remote")
	}
	a, err := remote.ParseAddress(e.Args[0], e.Dir)
	if err != nil {
		return err
	}
	far, err := a.SSH()
	if err != nil {
		return err
	}
	ssh, err := proc.LookPath("ssh", e.Dir, e.Environ)
	if err != nil {
		return fmt.Errorf("ssh: %w", err)
	}
	return become(ssh, far.Args(), e)
}
