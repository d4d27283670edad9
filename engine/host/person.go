package host

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/proc"
)

// gitPatience is the time limit for asking git for the user's name.
const gitPatience = 5 * time.Second

// Person returns who uses this program, and how that is known: the name that git has for the user, and the
// login name.
func Person(ctx context.Context, e env.Env) string { return name(ctx, e) + " (user " + e.User() + ")" }

// name returns git's user.name, or the login name.
func name(ctx context.Context, e env.Env) string {
	path, err := proc.LookPath("git", e.Dir, e.Environ)
	if err != nil {
		return e.User()
	}
	ctx, cancel := context.WithTimeout(ctx, gitPatience)
	defer cancel()
	git := proc.Command{Path: path, Args: []string{"config", "user.name"}, Dir: e.Dir, Env: e.Environ, Session: true}
	out, err := proc.Run(ctx, git, nil, 1<<10, time.Second)
	if err != nil || out.Code != 0 {
		return e.User() // the name is empty
	}
	return cmp.Or(strings.TrimSpace(string(out.Stdout)), e.User())
}
