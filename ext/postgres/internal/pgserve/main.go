//go:build unix

// Command pgserve runs a real Postgres server for the tests of other modules. It prints its address, and
// executes commands from stdin, one per line, until end of file:
//
//	restart              stops the server as pg_ctl does, and starts it again
//	crash                stops the server as in a crash, and starts it again
//	copies THREAD N      adds N threads in the state of THREAD; prints their IDs
//	chains               prints each thread as a line of JSON
//
// An empty line ends each response.
package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/ext/postgres/internal/pgtest"
	"github.com/united-workforce/uwf/ext/postgres/pgstore"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/util/threadid"
)

func main() {
	out := bufio.NewWriter(os.Stdout)
	err := serve(context.Background(), os.Stdin, out, time.Now)
	if err != nil {
		fmt.Fprintln(os.Stderr, "pgserve:", err)
		os.Exit(1)
	}
}

func serve(ctx context.Context, in io.Reader, out *bufio.Writer, now func() time.Time) error {
	server, err := pgtest.Start(ctx, "max_connections = 300")
	if err != nil {
		return err
	}
	defer func() { _ = server.Stop() }()
	address := server.Socket("postgres", "&pool_max_conns=1")
	if _, err := fmt.Fprintln(out, address); err != nil {
		return err
	}
	for lines := bufio.NewScanner(in); ; {
		if err := out.Flush(); err != nil || !lines.Scan() {
			return err
		}
		words := strings.Fields(lines.Text() + " .")
		switch words[0] {
		case "restart":
			err = again(ctx, server, syscall.SIGINT)
		case "crash":
			err = again(ctx, server, syscall.SIGQUIT)
		default:
			err = ask(ctx, address, words, out, now)
		}
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(out); err != nil {
			return err
		}
	}
}

func again(ctx context.Context, s *pgtest.Server, how syscall.Signal) error {
	if err := s.Halt(how); err != nil {
		return err
	}
	return s.Run(ctx)
}

// ask executes a command on the database.
func ask(ctx context.Context, address string, words []string, out io.Writer, now func() time.Time) error {
	db, err := pgstore.Open(ctx, address, pgstore.Options{})
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	switch words[0] {
	case "copies":
		return copies(ctx, db, words, out, now)
	case "chains":
		for s, err := range db.Remote("pgserve").Threads(ctx, remote.Filter{}) {
			if err == nil {
				err = chain(ctx, db, s, out)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("unknown %q", words[0])
}

func copies(ctx context.Context, db *pgstore.DB, words []string, out io.Writer, now func() time.Time) error {
	n, err := strconv.Atoi(words[2])
	if err != nil {
		return err
	}
	head, err := db.Head(ctx, words[1])
	if err != nil {
		return err
	}
	all := make([]heads.New, n)
	for i := range all {
		id, err := threadid.New(now(), rand.Reader)
		if err != nil {
			return err
		}
		all[i] = heads.New{Head: heads.Head{Thread: id, Hash: head}}
		if _, err := fmt.Fprintln(out, id); err != nil {
			return err
		}
	}
	return db.AddAll(ctx, all)
}

// link holds the part of a step that is equal for threads that did the same.
type link struct {
	Role   string        `json:"role"`
	Prompt string        `json:"prompt"`
	Output protocol.Hash `json:"output"`
}

// chain prints the chain of a thread.
func chain(ctx context.Context, db *pgstore.DB, s remote.State, out io.Writer) error {
	line := struct {
		Thread string          `json:"thread"`
		Status protocol.Status `json:"status"`
		Task   string          `json:"task"`
		Steps  []link          `json:"steps"`
	}{Thread: s.Thread}
	if s.Ended != nil {
		line.Status = s.Ended.Status
	}
	t, err := thread.Open(ctx, db, s.Head)
	if err != nil {
		return err
	}
	line.Task = t.Start.Prompt
	for step, err := range t.Steps(ctx) {
		if err != nil {
			return err
		}
		line.Steps = append(line.Steps, link{step.Role, step.EdgePrompt, step.Output})
	}
	return json.NewEncoder(out).Encode(line)
}
