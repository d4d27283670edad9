package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cmd/uwf-import-original/internal/originaltest"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
)

// Intermediate versions stored ended threads separately, and before SQLite there was a log.
func TestFormsInBetween(t *testing.T) {
	t.Parallel()
	u := newUser(t, originaltest.Flat)
	line := func(v map[string]any) string {
		text, err := json.Marshal(v)
		require.NoError(t, err)
		return string(text) + "\n"
	}
	u.Var("@uwf/history/"+endedThread, u.idle[2], map[string]string{"reason": "cancelled", "completedAt": "7"})
	u.Append("_vars.jsonl",
		line(map[string]any{"name": "@uwf/thread/" + fileThread, "schema": "s", "value": string(u.idle[0]), "updated": 1, "tags": map[string]string{}})+
			line(map[string]any{"name": "@uwf/thread/" + earlyThread, "schema": "s", "value": string(u.idle[0]), "updated": 1})+
			line(map[string]any{"name": "@uwf/thread/" + earlyThread, "schema": "s", "__op": "remove"}))
	status, report, _ := u.run()
	require.Zero(t, status, report.Problems)
	require.Equal(t, 3, report.Threads.Imported)
	end, err := u.index().Ended(t.Context(), endedThread)
	require.NoError(t, err)
	require.Equal(t, protocol.StatusCancelled, end.Status)
	require.Equal(t, int64(7), end.CompletedAt)
	require.Equal(t, u.idle[0], u.headOf(fileThread))
}

// The database is lost, but not the files from which it was created.
func TestMigratedFilesServeWithoutADatabase(t *testing.T) {
	t.Parallel()
	u := newUser(t, originaltest.Flat)
	u.AppendHome("threads.yaml.migrated", fileThread+": "+string(u.idle[2])+"\n")
	_, report, _ := u.run()
	require.Equal(t, 1, report.Threads.Imported, "what was taken over is not read again")
	require.NoError(t, os.RemoveAll(filepath.Join(u.Ocas, "vars")))
	require.NoError(t, os.RemoveAll(u.home))
	u.gone()
	status, report, _ := u.run()
	require.Equal(t, 1, report.Threads.Imported)
	require.Equal(t, u.idle[2], u.headOf(fileThread))
	require.Equal(t, protocol.CodeCorrupt.ExitCode(), status, "what came after the taking over is not known")
	prosetest.Text(t, report.Problems[0].Reason)
}

// A store with only nodes is reported as incomplete.
func TestNoDatabaseAndNoIndex(t *testing.T) {
	t.Parallel()
	u := newUser(t, originaltest.Flat)
	u.Save()
	require.NoError(t, os.RemoveAll(filepath.Join(u.Ocas, "vars")))
	u.gone()
	status, _, errs := u.run()
	require.Equal(t, protocol.CodeNotFound.ExitCode(), status)
	prosetest.Text(t, errs)
	require.NoDirExists(t, u.home)
}

// gone prevents Save from restoring the database.
func (u *user) gone() { u.Original.Forget() }

func TestReportsDamagedDatabase(t *testing.T) {
	t.Parallel()
	u := newUser(t, originaltest.Flat)
	u.Save()
	u.gone()
	for _, part := range []string{"-wal", "-shm"} {
		require.NoError(t, os.Remove(filepath.Join(u.Ocas, "vars", "_store.db"+part)))
	}
	require.NoError(t, os.WriteFile(filepath.Join(u.Ocas, "vars", "_store.db"), []byte("this is no database, whatever its name says"), 0o644))
	status, _, errs := u.run()
	require.NotZero(t, status)
	require.Contains(t, errs, "_store.db")
	require.NoDirExists(t, u.home)
}
