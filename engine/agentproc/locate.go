package agentproc

import "github.com/united-workforce/uwf/util/proc"

// locate finds the file of a command on the PATH that the agent will have, which
// is not always this process's: .env may set it.
func locate(command, dir string, environ []string) (string, error) {
	path, err := proc.LookPath(command, dir, environ)
	if err != nil {
		return "", &NotFoundError{Command: command, Err: err}
	}
	return path, nil
}
