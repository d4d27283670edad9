// Command uwf-remote-postgres is the helper for remotes in a Postgres database. uwf starts it; see
// docs/scale-out.md.
//
//	uwf-remote-postgres migrate <address>
//
// creates the tables, or migrates them to the version of this program. The other commands are the upkeep for
// the owner of the tables: rm, prune, gc, fsck, redact, seal and stats.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/ext/postgres/pgstore"
	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/remote/helper"
	"github.com/united-workforce/uwf/remote/wire"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/plaintext"
)

const programName = "uwf-remote-postgres"

func main() {
	if run := command(os.Args); run != nil {
		os.Exit(owner(run))
	}
	helper.Main(programName, open)
}

// command returns the command for an owner of the tables, or nil if uwf has started the program.
func command(args []string) func(context.Context, env.Env) error {
	if len(args) < 2 {
		return nil
	}
	if args[1] == "migrate" {
		return migrate
	}
	v, ok := verbs()[args[1]]
	if !ok {
		return nil
	}
	return func(ctx context.Context, e env.Env) error { return own(ctx, e, args[1], v) }
}

func owner(run func(context.Context, env.Env) error) (status int) {
	e, err := env.OS()
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		err = run(ctx, e)
		stop()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %s\n", programName, plaintext.Line(err.Error()))
		return 1
	}
	return 0
}

func open(ctx context.Context, _ env.Env, a remote.Address, h wire.Hello) (remote.Remote, error) {
	db, err := pgstore.Open(ctx, a.Text, pgstore.Options{Hash: h.Hash})
	if err != nil {
		return nil, err
	}
	return db.Remote(programName + " " + helper.Version()), nil
}

func migrate(ctx context.Context, e env.Env) error {
	if len(e.Args) != 2 {
		return errors.New("usage: " + programName + " migrate <address>")
	}
	from, to, err := pgstore.Migrate(ctx, e.Args[1], cas.XXH3)
	switch {
	case err != nil:
		return err
	case from == to:
		_, err = fmt.Fprintf(e.Stdout, "the schema already has version %d\n", to)
	case from == 0:
		_, err = fmt.Fprintf(e.Stdout, "created the schema with version %d\n", to)
	default:
		_, err = fmt.Fprintf(e.Stdout, "migrated the schema from version %d to %d\n", from, to)
	}
	return err
}
