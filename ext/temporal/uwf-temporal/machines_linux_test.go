//go:build temporal

package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
)

// One of three machines loses the agent's program: no thread fails, and its worker exits and cannot be
// started again. Failed threads are listed with their reasons and retried with one command.
func TestOneMachineIsBroken(t *testing.T) {
	w := newTeam(t, nil, map[string]string{
		"flow.yaml": strings.Replace(refusedWorkflow, "name: refused", "name: flow", 1),
		"home/config.yaml": `agents:
  ours: { command: our-agent, retry: { attempts: 1 } }
defaultAgent: ours
`,
		"mock.yaml": "steps:\n  - value: { note: done }\n",
	})
	machines, bins := make([]*machine, 3), t.TempDir() // programs in a workspace aren't used for roles
	for i := range machines {
		own := filepath.Join(bins, fmt.Sprint(i))
		require.NoError(t, os.Mkdir(own, 0o700))
		const script = "#!/bin/sh\ntest ! -e \"$TEAM/fails\" || exit 1\nexec uwf-mock --mock-data \"$TEAM/mock.yaml\" \"$@\"\n"
		require.NoError(t, os.WriteFile(filepath.Join(own, "our-agent"), []byte(script), 0o700))
		at := *w
		at.environ = append(slices.Clone(w.environ), "PATH="+own+":"+w.onPath+":"+os.Getenv("PATH"))
		if i > 0 {
			machines[i] = at.serve(t)
			continue
		}
		machines[i] = &machine{team: &at, args: []string{"--listen", "127.0.0.1:0"}}
		machines[i].start(t)
	}
	probe := ""
	w.eventually(t, "the first machine answers probes", func() bool {
		_, after, found := strings.Cut(w.log(), "probes: ")
		probe, _, _ = strings.Cut(after, "\n")
		return found
	})
	asked, err := http.Get(probe)
	require.NoError(t, err)
	require.NoError(t, asked.Body.Close())
	require.Equal(t, http.StatusOK, asked.StatusCode)

	require.NoError(t, os.Remove(filepath.Join(bins, "0", "our-agent")))
	var threads []string
	for range 20 {
		threads = append(threads, w.begin(t, "./flow.yaml"))
	}
	for _, thread := range threads {
		w.ended(t, thread, "completed")
	}
	listed := ask[[]worked](t, w, "uwf-temporal", "list", "--all")
	require.Len(t, listed, len(threads))
	for range 10 { // it exits after failures of five threads
		if machines[0].cmd.ProcessState != nil || strings.Contains(w.log(), "in a row") {
			break
		}
		thread := w.begin(t, "./flow.yaml")
		w.ended(t, thread, "completed")
	}
	again := machines[0].team
	_, err = again.try("uwf-temporal", "worker")
	require.ErrorContains(t, err, "our-agent", "it does not start again")
	_ = machines[0].cmd.Process.Signal(syscall.SIGTERM)
	_ = machines[0].cmd.Wait()
	require.Contains(t, string(must(os.ReadFile(w.path("workers.log")))), `"code":"agent","machine":true`)

	w.write(t, map[string]string{"fails": ""})
	thread := w.begin(t, "./flow.yaml")
	w.ended(t, thread, "failed")
	listed = ask[[]worked](t, w, "uwf-temporal", "list", "--all")
	at := slices.IndexFunc(listed, func(l worked) bool { return l.Thread == thread })
	require.Equal(t, "uwf.failed", listed[at].Kind)
	require.NoError(t, os.Remove(w.path("fails")))
	done := ask[retried](t, w, "uwf-temporal", "retry", "--failed", "--since", "1h")
	require.Len(t, done.Threads, 1)
	require.Equal(t, thread, done.Threads[0].Thread)
	w.ended(t, thread, "completed")
	require.Empty(t, ask[retried](t, w, "uwf-temporal", "retry", "--failed", "--since", "1h").Threads)
}

// A question is sent as a notice once. Its answer counts at once, even after all workers were killed or
// stopped, and started again.
func TestAnswersAfterARestart(t *testing.T) {
	w := newTeam(t, nil, map[string]string{"approve.yaml": approveWorkflow})
	w.write(t, map[string]string{"home/config.yaml": fmt.Sprintf("notify: { on: [waiting], command: [sh, -c, 'cat >> %s'] }\n", w.path("notices"))})
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		m := &machine{team: w}
		m.start(t)
		require.NoError(t, os.RemoveAll(w.path("notices")))
		thread := w.begin(t, "./approve.yaml")
		w.eventually(t, "it asks", func() bool {
			waiting := ask[[]protocol.ThreadItem](t, w, "uwf", "remote", "list", "team", "--waiting")
			return slices.ContainsFunc(waiting, func(i protocol.ThreadItem) bool { return i.Thread == thread })
		})
		notices := func() string { text, _ := os.ReadFile(w.path("notices")); return string(text) }
		w.eventually(t, "its notice is sent", func() bool { return strings.Contains(notices(), thread) })
		require.Equal(t, 1, strings.Count(notices(), `"event":"waiting"`))

		require.NoError(t, m.cmd.Process.Signal(signal))
		_ = m.cmd.Wait()
		other := &machine{team: w}
		other.start(t)
		w.eventually(t, "the new worker has looked at it", func() bool {
			return strings.Count(w.log(), "slots, task queue") >= 2 && len(ask[[]worked](t, w, "uwf-temporal", "list")) == 1 &&
				ask[[]worked](t, w, "uwf-temporal", "list")[0].Status == "waiting"
		})
		time.Sleep(3 * time.Second) // the answer comes at any time; here, after another worker has the thread
		w.answer(t, thread)
		begun := time.Now()
		w.ended(t, thread, "completed")
		t.Logf("after %v the answer counted within %v", signal, time.Since(begun))
		require.Less(t, time.Since(begun), 20*time.Second, "before the workflow would look by itself, on whatever machine")
		require.NoError(t, other.cmd.Process.Signal(syscall.SIGTERM))
		require.NoError(t, other.cmd.Wait())
	}
}
