//go:build !linux

package proc

import "os/exec"

func startTied(cmd *exec.Cmd, c Command) (group, func(), error) {
	g, err := startInGroup(cmd, c)
	return g, func() {}, err
}
