package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/catalog"
	"github.com/united-workforce/uwf/protocol"
)

// plays uses this test's program as an agent: it waits for the file "gate" in the home, then answers "done".
func (s *site) plays() (open func()) {
	s.Helper()
	exe, err := os.Executable()
	require.NoError(s, err)
	home := s.engine.Reader.Dirs.Home
	script, gate := filepath.Join(home, "script.yaml"), filepath.Join(home, "gate")
	wait := fmt.Sprintf(`until [ -e %q ]; do sleep 0.02; done; exec %q agent --mock-data %q "$@"`, gate, exe, script)
	config := fmt.Sprintf("defaultAgent: fake\nagents: {fake: {command: sh, args: [-c, %q, sh]}}\ncommands: {sandbox: {mode: none}}\n", wait)
	for path, text := range map[string]string{
		script:                        "repeat: true\nsteps:\n  - output: \"---\\n$status: done\\ntext: x\\n---\\nDone.\\n\"\n",
		s.engine.Reader.Dirs.Config(): config,
	} {
		require.NoError(s, os.WriteFile(path, []byte(text), 0o600))
	}
	return func() { require.NoError(s, os.WriteFile(gate, nil, 0o600)) }
}

func (s *site) steps(id string) int {
	s.Helper()
	head, err := s.engine.Reader.Head(s.Context(), id)
	require.NoError(s, err)
	t, err := thread.Open(s.Context(), s.engine.Reader.Store, head)
	require.NoError(s, err)
	return t.Len()
}

func (s *site) waits(id string) protocol.StepOutput {
	s.Helper()
	at, err := s.engine.Reader.Wait(s.Context(), id)
	require.NoError(s, err)
	return at
}

// The forms on the pages work without the uwf program.
func TestActions(t *testing.T) {
	t.Parallel()
	s := newSite(t, true)
	s.plays()()
	id := s.start("x")
	act := func(verb string, form url.Values) string {
		t.Helper()
		status, page := s.post("thread/"+id+"/"+verb, form)
		require.Equal(t, http.StatusOK, status, "%s: %s", verb, page) // of the resulting page
		return page
	}
	refused := func(verb string, form url.Values, with int) {
		t.Helper()
		status, page := s.post("thread/"+id+"/"+verb, form)
		require.Equal(t, with, status, page)
	}
	act("continue", nil)
	require.Equal(t, protocol.StatusSuspended, s.waits(id).Status)
	require.Equal(t, 1, s.steps(id))
	first := s.waits(id).Head
	refused("continue", nil, http.StatusUnprocessableEntity) // it waits for an answer
	refused("retry", url.Values{"text": {" "}}, http.StatusUnprocessableEntity)
	refused("rm", nil, http.StatusNotFound)

	act("retry", url.Values{"text": {"shorter"}, "step": {string(first)}})
	require.NotEqual(t, first, s.waits(id).Head)
	require.Equal(t, 1, s.steps(id))
	act("undo", nil)
	require.Equal(t, 0, s.steps(id))
	act("redo", nil)
	require.Equal(t, 1, s.steps(id))
	act("stop", nil)
	require.Regexp(t, `[0-9a-f]{64}`, act("seal", nil))
	require.Contains(t, act("seal", nil), "Seal")

	head := s.waits(id).Head
	other := regexp.MustCompile(`thread/([0-9A-Z]{26})/fork`).FindStringSubmatch(s.get("thread/"+id+"/step/"+string(head), http.StatusOK))
	require.NotNil(t, other)
	before, err := threads(s)
	require.NoError(t, err)
	act("fork", url.Values{"step": {string(head)}})
	act("replay", url.Values{"step": {string(head)}})
	after, err := threads(s)
	require.NoError(t, err)
	require.Len(t, after, len(before)+2)
	for made := range after {
		if made == id {
			continue
		}
		require.Equal(t, protocol.StatusSuspended, s.waits(made).Status)
		require.Equal(t, 1, s.steps(made))
	}

	refused("answer", url.Values{"head": {string(first)}, "field.$status": {"yes"}}, http.StatusUnprocessableEntity)
	act("answer", url.Values{"head": {string(head)}, "field.$status": {"yes"}})
	at := s.waits(id)
	require.Equal(t, protocol.StatusCompleted, at.Status)
	made, err := cas.Read[protocol.Step](t.Context(), s.engine.Reader.Store, at.Head)
	require.NoError(t, err)
	detail, err := cas.Read[protocol.Detail](t.Context(), s.engine.Reader.Store, made.Detail)
	require.NoError(t, err)
	require.NotEmpty(t, detail.By)
}

func threads(s *site) (map[string]heads.ThreadState, error) {
	return heads.ThreadStates(s.Context(), s.engine.Reader.Heads)
}

const command = `name: make
description: A command.
roles: {check: {description: d, run: [sh, -c, "echo '<b>ran</b>' > ran.txt"]}}
graph: {$START: {_: {role: check, prompt: x}}, check: {passed: $END, failed: $END}}
`

// Commands of a thread from elsewhere are shown before they run, and run only after the user has confirmed
// them.
func TestCommandsFromElsewhereAreConfirmed(t *testing.T) {
	t.Parallel()
	s := newSite(t, true)
	s.plays()()
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "make.yaml"), []byte(command), 0o600))
	start := protocol.Start{Prompt: "x", Cwd: s.dir}
	started, err := catalog.Of(s.engine).Start(t.Context(), s.engine, "make.yaml", start, engine.StartOptions{})
	require.NoError(t, err)
	imported := heads.Facts{Imported: &heads.Imported{AtMs: 1, Confirmed: true}}
	require.NoError(t, s.engine.Reader.Heads.SetFacts(t.Context(), started.Thread, imported))

	path, form := "thread/"+started.Thread+"/continue", url.Values{}
	for range 3 { // for the workflow, then for the thread's own commands
		status, page := s.post(path, form)
		if status == http.StatusOK {
			break
		}
		require.Equal(t, http.StatusUnprocessableEntity, status)
		require.NoFileExists(t, filepath.Join(s.dir, "ran.txt"))
		require.Contains(t, page, "&lt;b&gt;ran&lt;/b&gt;")
		require.NotContains(t, page, "<b>ran")
		form = url.Values{}
		for _, found := range regexp.MustCompile(`name="(trust[^"]*)" value="([^"]*)"`).FindAllStringSubmatch(page, -1) {
			form.Set(found[1], found[2])
		}
		require.NotEmpty(t, form, page)
	}
	require.Equal(t, protocol.StatusCompleted, s.waits(started.Thread).Status)
	require.FileExists(t, filepath.Join(s.dir, "ran.txt"))
	status, _ := s.post(path, url.Values{"trust.thread": {"../x"}})
	require.Equal(t, http.StatusNotFound, status)
}

// If the server is killed while an agent works, the step still completes.
func TestAStepOutlivesTheServer(t *testing.T) {
	t.Parallel()
	s := newSite(t, true)
	open := s.plays()
	id := s.start("x")
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(exe, "--actions", "--format", "json")
	cmd.Dir, cmd.Env = s.dir, append(s.engine.Reader.Env.Environ, asServer+"=1")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	var at started
	line, err := bufio.NewReader(out).ReadBytes('\n')
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(line, &at), "%s", line)
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	browser := &http.Client{Jar: jar}
	answer, err := browser.Get(at.Address)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	site := answer.Request.URL
	answer, err = browser.Get(site.String() + "thread/" + id)
	require.NoError(t, err)
	page, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	token := regexp.MustCompile(`name="token" value="([^"]*)"`).FindSubmatch(page)
	require.NotNil(t, token, "%s", page)
	post, err := http.NewRequestWithContext(t.Context(), http.MethodPost, site.String()+"thread/"+id+"/continue",
		strings.NewReader(url.Values{"token": {string(token[1])}}.Encode()))
	require.NoError(t, err)
	post.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	post.Header.Set("Origin", site.Scheme+"://"+site.Host)
	answer, err = browser.Do(post)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusOK, answer.StatusCode)

	running, err := s.engine.Reader.Show(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, protocol.StatusRunning, running.Status)
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait() // killed
	open()
	require.Equal(t, protocol.StatusSuspended, s.waits(id).Status, "a person is asked")
	require.Equal(t, 1, s.steps(id))
}
