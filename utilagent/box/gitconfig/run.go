package gitconfig

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/proc"
)

// git runs it outside of any repository and without the user's settings.
func (m Merging) git(ctx context.Context, stdin []byte, args ...string) ([]byte, error) {
	program, err := proc.LookPath("git", m.Dir, m.Environ)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program, args...)
	environ := slices.DeleteFunc(slices.Clone(m.Environ), func(v string) bool { return strings.HasPrefix(v, "GIT_") })
	cmd.Env = append(environ, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null")
	cmd.Dir, cmd.Stdin = "/", bytes.NewReader(stdin)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git config: %w: %s", err, plaintext.Line(strings.TrimSpace(stderr.String())))
	}
	return out, nil
}

// told are the lines for a person.
func (c *choice) told() []string {
	lines := c.lines
	if more := len(lines) - maxNames; more > 0 {
		lines = append(lines[:maxNames:maxNames], fmt.Sprintf("changed %d more remotes or names", more))
	}
	if len(c.dropped) > 0 {
		slices.Sort(c.dropped)
		names := make([]string, 0, len(c.dropped))
		for _, key := range slices.Compact(c.dropped) {
			names = append(names, plaintext.Short(key, 100))
		}
		lines = append(lines, "set what was not kept: "+plaintext.Names(names, maxNames))
	}
	return lines
}
