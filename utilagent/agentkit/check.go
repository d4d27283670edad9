package agentkit

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/render"
	"github.com/united-workforce/uwf/utilagent/internal/runenv"
)

// withoutCheck takes --check out of the arguments before a "--", if the agent
// knows what to say.
func withoutCheck(args []string, o Options) ([]string, bool) {
	i := slices.Index(args, protocol.FlagCheck)
	if end := slices.Index(args, "--"); o.Check == nil || i < 0 || end >= 0 && i > end {
		return args, false
	}
	return slices.Delete(slices.Clone(args), i, i+1), true
}

// checked lets the agent read its own arguments, as before a run.
func checked(args []string, o Options) error {
	if o.ParseArgs == nil {
		return nil
	}
	if _, err := o.ParseArgs(args); err != nil {
		return newUsageError(err.Error(), args, o)
	}
	return nil
}

// check prints what the agent says of its program. A problem is an error.
func check(ctx context.Context, e env.Env, o Options) error {
	dirs, err := home.Find(e, "", "")
	if err == nil {
		if e, err = config.LoadDotEnv(dirs.DotEnv(), e); err != nil {
			return err
		}
	}
	found := o.Check((&runenv.Run{Env: e, Dirs: dirs}).With(ctx))
	line, err := json.Marshal(found)
	if err != nil {
		return err
	}
	if _, err = e.Stdout.Write(append(line, '\n')); err != nil {
		return err
	}
	if n := len(found.Problems); n > 0 {
		return fmt.Errorf("%s found: see stdout", render.Count(n, "problem"))
	}
	return nil
}
