package proc

import "os/exec"

// StartDetached starts a process without input and output, and doesn't wait for it. It outlives us and our
// terminal.
func StartDetached(dir string, environ []string, path string, args ...string) error {
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = dir, environ, apart()
	if err := cmd.Start(); err != nil {
		return err
	}
	return cmd.Process.Release()
}
