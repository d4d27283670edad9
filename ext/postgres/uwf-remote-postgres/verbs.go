package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/fsck"
	"github.com/united-workforce/uwf/cas/gc"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/prune"
	"github.com/united-workforce/uwf/cas/redact"
	"github.com/united-workforce/uwf/cas/seal"
	"github.com/united-workforce/uwf/ext/postgres/pgstore"
	"github.com/united-workforce/uwf/util/env"
)

// verb is a command for the owner of the tables.
type verb struct {
	usage string // of the arguments after the address
	least int    // number of these arguments
	most  int    // -1: any
	flags func(*flag.FlagSet, *options)
	run   func(context.Context, pgstore.Owner, options, []string) (any, error)
}

// options are the flags of all verbs.
type options struct {
	grace, keep            time.Duration
	dryRun, damaged        bool
	repair, shared         bool
	reason, files, program string
	now                    func() time.Time
}

func verbs() map[string]verb {
	return map[string]verb{
		"rm": {usage: "THREAD...", least: 1, most: -1, run: remove},
		"prune": {usage: "--keep DURATION [--dry-run]", run: forget, flags: func(f *flag.FlagSet, o *options) {
			f.DurationVar(&o.keep, "keep", 0, "")
			f.BoolVar(&o.dryRun, "dry-run", false, "")
		}},
		"gc": {usage: "[--grace DURATION] [--dry-run] [--damaged]", run: collect, flags: func(f *flag.FlagSet, o *options) {
			f.DurationVar(&o.grace, "grace", gc.DefaultGrace, "")
			f.BoolVar(&o.dryRun, "dry-run", false, "")
			f.BoolVar(&o.damaged, "damaged", false, "")
		}},
		"fsck": {usage: "[--repair]", run: check, flags: func(f *flag.FlagSet, o *options) {
			f.BoolVar(&o.repair, "repair", false, "")
		}},
		"redact": {usage: "THREAD (NODE [--reason TEXT] | --files PATH) [--shared]", least: 1, most: 2, run: redactThread,
			flags: func(f *flag.FlagSet, o *options) {
				f.StringVar(&o.reason, "reason", "", "")
				f.StringVar(&o.files, "files", "", "")
				f.BoolVar(&o.shared, "shared", false, "")
			}},
		"seal":  {usage: "THREAD", least: 1, most: 1, run: sealThread},
		"stats": {run: stats},
	}
}

// errUnsound means that a check has found faults, which the output lists.
var errUnsound = errors.New("the database has faults")

// own runs a verb and prints its result as JSON.
func own(ctx context.Context, e env.Env, name string, v verb) error {
	o := options{now: e.Now, program: programName}
	f := flag.NewFlagSet(name, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	if v.flags != nil {
		v.flags(f, &o)
	}
	usage := fmt.Errorf("usage: %s %s ADDRESS %s", programName, name, v.usage)
	var args []string
	for rest := e.Args[1:]; len(rest) > 0; { // flags can be anywhere
		if err := f.Parse(rest); err != nil {
			return fmt.Errorf("%w; %w", err, usage)
		}
		if rest = f.Args(); len(rest) > 0 {
			args, rest = append(args, rest[0]), rest[1:]
		}
	}
	if n := len(args) - 1; n < v.least || v.most >= 0 && n > v.most {
		return usage
	}
	db, err := pgstore.Open(ctx, args[0], pgstore.Options{Upkeep: true})
	if err != nil {
		return err
	}
	out, err := v.run(ctx, db.Owner(), o, args[1:])
	if err != nil && !errors.Is(err, errUnsound) {
		return errors.Join(err, db.Close())
	}
	return errors.Join(json.NewEncoder(e.Stdout).Encode(out), err, db.Close())
}

func remove(ctx context.Context, db pgstore.Owner, _ options, threads []string) (any, error) {
	return db.Remove(ctx, threads...)
}

func forget(ctx context.Context, db pgstore.Owner, o options, _ []string) (any, error) {
	if o.keep <= 0 {
		return nil, errors.New("prune needs --keep DURATION; threads that ended before are removed, such as --keep 2160h")
	}
	now, err := db.Now(ctx)
	if err != nil {
		return nil, err
	}
	report, err := prune.Run(ctx, db, prune.Options{Keep: o.keep, DryRun: o.dryRun, Now: now})
	removed := pgstore.Removed{Threads: []string{}}
	for _, e := range report.Pruned {
		removed.Threads = append(removed.Threads, e.Thread)
	}
	return removed, err
}

func collect(ctx context.Context, db pgstore.Owner, o options, _ []string) (any, error) {
	return db.Collect(ctx, pgstore.CollectOptions{Grace: o.grace, DryRun: o.dryRun, Damaged: o.damaged})
}

func check(ctx context.Context, db pgstore.Owner, o options, _ []string) (any, error) {
	report, err := fsck.Run(ctx, db, fsck.Options{Index: db, Repair: o.repair, Program: o.program, Now: o.now})
	if err == nil && !report.Sound() {
		err = errUnsound
	}
	return report, err
}

func redactThread(ctx context.Context, db pgstore.Owner, o options, args []string) (any, error) {
	if (len(args) == 2) == (o.files != "") || o.files != "" && o.reason != "" {
		return nil, errors.New("redact needs either NODE or --files PATH; --reason works only with NODE")
	}
	if o.files != "" {
		done, err := db.RedactFiles(ctx, args[0], o.files, o.shared)
		if err == nil && done.States == 0 {
			err = fmt.Errorf("no snapshot of thread %s has %s", args[0], o.files)
		}
		return done, err
	}
	done, err := db.RedactNode(ctx, args[0], cas.Hash(strings.ToUpper(args[1])), redact.Options{Reason: o.reason, Shared: o.shared,
		LooksBack: redact.LooksBack, Now: o.now})
	if errors.As(err, new(*redact.SharedError)) {
		err = fmt.Errorf("%w; to redact it in all of them: --shared", err)
	}
	return done, err
}

// sealed is the result of seal.
type sealed struct {
	Thread string   `json:"thread"`
	Head   cas.Hash `json:"head"`
	Seal   string   `json:"seal"`
	New    int      `json:"newNodes"` // sealed for the first time
}

func sealThread(ctx context.Context, db pgstore.Owner, _ options, args []string) (any, error) {
	at, err := heads.Find(ctx, db, args[0])
	if err != nil {
		return nil, err
	}
	kept, err := seal.Keep(ctx, db, at.Head)
	return sealed{Thread: args[0], Head: at.Head, Seal: kept.Seal.String(), New: kept.New}, errors.Join(err, kept.Err)
}

func stats(ctx context.Context, db pgstore.Owner, _ options, _ []string) (any, error) {
	return db.Stats(ctx)
}
