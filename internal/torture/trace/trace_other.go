//go:build !(linux && amd64)

package trace

import "os/exec"

func run(*exec.Cmd, Plan) (Outcome, error) { return Outcome{}, ErrUnsupported }
