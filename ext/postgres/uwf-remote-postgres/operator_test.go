//go:build postgres

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/ext/postgres/internal/pgtest"
	"github.com/united-workforce/uwf/ext/postgres/pgstore"
	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/remote/remotetest"
	"github.com/united-workforce/uwf/remote/wire"
	"github.com/united-workforce/uwf/util/gitobject"
)

// blocks returns the code blocks in docs/scale-out.md that have a language, by language.
func blocks(t *testing.T) map[string]string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "scale-out.md"))
	require.NoError(t, err)
	found := map[string]string{}
	for _, b := range regexp.MustCompile("(?s)```([a-z][a-z ]*)\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		found[b[1]] += b[2]
	}
	require.Len(t, found, 3)
	return found
}

// TestOperator follows docs/scale-out.md: roles, tables, TLS, passwords and backup.
func TestOperator(t *testing.T) {
	t.Parallel()
	ctx, page := t.Context(), blocks(t)
	s, err := pgtest.Start(ctx)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Stop()) })
	require.NoError(t, s.Exec(ctx, "postgres", "postgres", page["sql"]))
	require.NoError(t, s.Exec(ctx, "postgres", "postgres", `alter role uwf password 'sesame'; alter role uwf_owner password 'owner'`))
	certificate, err := s.Strict(ctx, time.Now())
	require.NoError(t, err)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(ca, certificate, 0o600))
	address := func(role, query string) remote.Address {
		return remote.Address{Scheme: "postgres", Text: fmt.Sprintf("postgres://%s@127.0.0.1:%d/uwf?%s", role, s.Port, query)}
	}
	verified := "sslmode=verify-full&sslrootcert=" + ca
	dial := func(a remote.Address, variables ...string) (*wire.Client, error) {
		return wire.Dial(ctx, wire.Helper{Address: a, Environ: append(environ(t), append([]string{"HOME=" + t.TempDir()}, variables...)...), Dir: t.TempDir()}, wire.Options{Hash: cas.XXH3, Program: "test"})
	}

	_, err = dial(address("uwf", verified), "PGPASSWORD=sesame")
	require.ErrorContains(t, err, "its owner must run uwf-remote-postgres migrate", "the role may not make tables")
	exe, err := os.Executable()
	require.NoError(t, err)
	run := func(args ...string) (string, error) {
		cmd := exec.Command(exe, args...)
		cmd.Args[0], cmd.Env = programName, append(os.Environ(), "PGPASSWORD=owner")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for _, args := range [][]string{{"postgres://uwf:sesame@127.0.0.1/uwf"}, {"migrate", "postgres://uwf:sesame@127.0.0.1/uwf"}} {
		out, err := run(args...)
		require.Error(t, err)
		require.Contains(t, out, "password")
		require.NotContains(t, out, "sesame")
	}
	out, err := run("migrate", address("uwf_owner", verified).Text)
	require.NoError(t, err, out)
	require.Equal(t, "created the schema with version 2\n", out)
	require.NoError(t, s.Exec(ctx, "uwf", "uwf_owner", page["sql owner"]))

	for _, c := range []struct {
		a        remote.Address
		password string
		why      string
	}{
		{address("uwf", verified), "guessed", "password authentication failed"},
		{address("uwf", verified), "", "password authentication failed"},
		{address("uwf", "sslmode=verify-full"), "sesame", "certificate"},
		{address("uwf", "sslmode=disable"), "sesame", "no encryption"},
	} {
		_, err := dial(c.a, "PGPASSWORD="+c.password)
		require.ErrorContains(t, err, c.why)
		require.NotContains(t, err.Error(), "guessed")
		require.NotContains(t, err.Error(), "sesame")
	}

	passwords := filepath.Join(t.TempDir(), "passwords")
	require.NoError(t, os.WriteFile(passwords, []byte("127.0.0.1:*:uwf:uwf:sesame\n"), 0o600))
	r, err := dial(address("uwf", verified), "PGPASSFILE="+passwords)
	require.NoError(t, err)
	use(t, r)
	for _, statement := range []string{
		`update uwf.nodes set payload = ''`, `delete from uwf.nodes`, `delete from uwf.heads`, `update uwf.format set version = 9`, `create table uwf.x ()`, `drop table uwf.nodes`,
		`truncate uwf.nodes`, `update uwf.objects set content = ''`, `delete from uwf.facts`, `update uwf.done set at = now()`,
		`create table public.x ()`, `create temp table x ()`, `create schema y`, `copy uwf.nodes to program 'id'`,
	} {
		require.Error(t, s.Exec(ctx, "uwf", "uwf", statement), statement)
	}
	require.NoError(t, r.Close())

	require.NoError(t, s.Exec(ctx, "postgres", "postgres", `alter role worker7 password 'seven'`))
	own, err := dial(address("worker7", verified), "PGPASSWORD=seven")
	require.NoError(t, err, "a worker's own role")
	_, err = own.Thread(ctx, thread)
	require.NoError(t, err)
	require.NoError(t, own.Close())
	require.NoError(t, s.Exec(ctx, "postgres", "postgres", `alter role worker7 nologin`))
	_, err = dial(address("worker7", verified), "PGPASSWORD=seven")
	require.ErrorContains(t, err, "not permitted to log in")

	require.NoError(t, s.Exec(ctx, "postgres", "postgres", `create database restored`))
	require.NoError(t, s.Shell(page["sh"]))
	db, err := pgstore.Open(ctx, fmt.Sprintf("postgres://postgres@/restored?host=%s&port=%d", s.Dir, s.Port), pgstore.Options{})
	require.NoError(t, err)
	restored := db.Remote("test")
	state, err := restored.Thread(ctx, thread)
	require.NoError(t, err)
	for _, err := range restored.Walk(ctx, []cas.Hash{state.Head}, nil) {
		require.NoError(t, err, "all that the head leads to was restored")
	}
	require.NoError(t, db.Close())
}

// use uses a remote as workers do.
func use(t *testing.T, r remote.Remote) {
	t.Helper()
	ctx := t.Context()
	chain := remotetest.NewChain(t, cas.XXH3, "a task", 3)
	chain.Begin(r, thread)
	lease, err := r.Take(ctx, thread, "worker", time.Minute)
	require.NoError(t, err)
	lease, err = r.Renew(ctx, thread, lease.Fence, time.Minute)
	require.NoError(t, err)
	next, title := chain.After(chain.Head(), 9), "a title"
	chain.Push(r, next)
	swap := remote.Swap{Thread: thread, Was: chain.Head(), Head: next, Fence: lease.Fence}
	swap.Facts.Title = &title
	require.NoError(t, r.Swap(ctx, swap))
	require.NoError(t, r.Release(ctx, thread, lease.Fence))
	require.NoError(t, r.Swap(ctx, remote.Swap{Thread: thread, Was: next, Head: next, Ended: &remote.Ended{Workflow: chain.Workflow, Status: "completed", CompletedAt: 1}}))
	require.NoError(t, r.Register(ctx, "fix", "", chain.Workflow))
	file := remote.Object{ID: gitobject.ID(gitobject.File, []byte("x"), "sha1"), Kind: gitobject.File, Content: []byte("x")}
	require.NoError(t, r.PutObjects(ctx, []remote.Object{file}))
	for s, err := range r.Threads(ctx, remote.Filter{}) {
		require.NoError(t, err)
		require.Equal(t, next, s.Head)
	}
}
