//go:build !(linux && amd64)

package trace

import "os/exec"

const supported = false

func run(*exec.Cmd, Plan) (Outcome, error) { return Outcome{}, ErrUnsupported }
