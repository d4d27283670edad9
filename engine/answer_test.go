//go:build unix

package engine

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/protocol"
)

// gate returns a world with a suspended thread. Its workflow asks a person whether to end.
func gate(t *testing.T) (*world, string) {
	t.Helper()
	w := newWorld(t, "")
	w.workflow = w.put(protocol.Workflow{
		Name: "gate", Roles: map[string]protocol.Role{"approve": {Description: "Approves.", Capabilities: []string{}, Person: true}},
		Graph: map[string]protocol.GraphNode{
			"$START":  {Edges: map[string]protocol.Edge{"_": {Role: "approve", Prompt: "May it?"}}},
			"approve": {Edges: map[string]protocol.Edge{"yes": {Role: "$END"}, "no": {Role: "approve", Prompt: "And now?"}}},
		},
		Limits: &protocol.Limits{MaxSteps: 1},
	}, map[string]any{
		"type": "object", "required": []any{"$status"}, "additionalProperties": false,
		"properties": map[string]any{"$status": map[string]any{"enum": []any{"yes", "no"}}},
	})
	return w, w.start()
}

func (w *world) answers(id, status string, at protocol.Hash) (protocol.StepOutput, error) {
	outs, err := w.Do(context.Background(), id, Work{Do: DoAnswer, Steps: 1, Answer: &Answer{Value: map[string]any{"$status": status}, By: "Ada\nL.", At: at}})
	if len(outs) == 0 {
		return protocol.StepOutput{}, err
	}
	return outs[0], err
}

// Of two concurrent answers, one is accepted and the other gets an error.
func TestOfTwoAnswersOneCounts(t *testing.T) {
	t.Parallel()
	w, id := gate(t)
	at := w.head(id)
	var (
		all    sync.WaitGroup
		mu     sync.Mutex
		taken  int
		failed []error
	)
	for range 2 {
		all.Go(func() {
			_, err := w.answers(id, "no", at)
			for isLocked(err) { // like the command line, it waits
				_, err = w.answers(id, "no", at)
			}
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				taken++
			} else {
				failed = append(failed, err)
			}
		})
	}
	all.Wait()
	require.Equal(t, 1, taken)
	require.Len(t, failed, 1)
	requireCode(t, failed[0], protocol.CodeFailed)
	out := w.show(id)
	require.Equal(t, "And now?", out.Question.Text, "no limit stops a person")
	require.NotNil(t, out.Question.Schema)
	s := w.readStep(out.Head)
	require.Equal(t, protocol.PersonAgent, s.Agent)
	d, err := cas.Read[protocol.Detail](t.Context(), w.Reader.Store, s.Detail)
	require.NoError(t, err)
	require.Equal(t, "Ada L.", d.By)
}

func isLocked(err error) bool {
	return err != nil && fault.Of(err).Code == protocol.CodeLocked
}

// An answer that doesn't match the schema changes nothing.
func TestAnswerThatDoesNotFit(t *testing.T) {
	t.Parallel()
	w, id := gate(t)
	_, err := w.answers(id, "perhaps", "")
	requireCode(t, err, protocol.CodeInvalid, "- $status: ")
	var unfit *UnfitError
	require.ErrorAs(t, err, &unfit)
	require.Len(t, unfit.Problems, 1)
	require.Nil(t, w.show(id).Error)
	_, err = w.Resume(t.Context(), id, "yes", StepOptions{})
	requireCode(t, err, protocol.CodeFailed)
	out, err := w.answers(id, "yes", "")
	require.NoError(t, err)
	require.True(t, out.Done)
	_, err = w.answers(id, "yes", "")
	requireCode(t, err, protocol.CodeFailed)
	_, err = w.Resume(t.Context(), id, "again", StepOptions{})
	requireCode(t, err, protocol.CodeFailed)
}

// If the engine was killed before it moved the head, its answer is adopted and not recorded twice.
func TestAnswerOfAKilledEngineIsAdopted(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]func(*world, string) (protocol.StepOutput, error){
		"step":   func(w *world, id string) (protocol.StepOutput, error) { return w.Step(t.Context(), id, StepOptions{}) },
		"answer": func(w *world, id string) (protocol.StepOutput, error) { return w.answers(id, "no", w.head(id)) },
	} {
		w, id := gate(t)
		h, err := w.lock(t.Context(), id)
		require.NoError(t, err)
		pos, err := w.at(t.Context(), h)
		require.NoError(t, err)
		asked, err := w.graphTask(t.Context(), pos, pos.Next)
		require.NoError(t, err)
		a := w.Engine.newSession(h).byItself(pos, asked, protocol.PersonAgent)
		b := a.reader.Batch()
		output, text, err := a.fitting(t.Context(), b, map[string]any{"$status": "yes"})
		require.NoError(t, err)
		a.task.cwd, a.record = w.dir, a.newRecord()
		a.record.Cwd = w.dir
		lock, err := a.prepare(t.Context())
		require.NoError(t, err)
		_, err = a.submit(t.Context(), b, own{agent: protocol.PersonAgent, output: output, by: protocol.ByValue, answer: text})
		require.NoError(t, err)
		require.NoError(t, lock.Unlock())
		h.release()

		require.True(t, w.show(id).Pending)
		out, err := next(w, id)
		if name == "answer" {
			requireCode(t, err, protocol.CodeFailed)
			out = w.show(id)
		} else {
			require.NoError(t, err)
			require.True(t, out.Adopted)
		}
		require.Equal(t, protocol.StatusCompleted, out.Status, name)
	}
}

// An answer counts once, also if the user has to confirm the next role's command after it.
func TestAnswerThenTrust(t *testing.T) {
	t.Parallel()
	w, _ := gate(t)
	w.workflow = w.put(protocol.Workflow{
		Name: "gate", Roles: map[string]protocol.Role{
			"approve": {Description: "Approves.", Capabilities: []string{}, Person: true},
			"check":   {Description: "Checks.", Capabilities: []string{}, Run: []string{"true"}},
		},
		Graph: map[string]protocol.GraphNode{
			"$START":  {Edges: map[string]protocol.Edge{"_": {Role: "approve", Prompt: "May it?"}}},
			"approve": {Edges: map[string]protocol.Edge{"_": {Role: "check", Prompt: "Go."}}},
			"check":   {Edges: map[string]protocol.Edge{"_": {Role: "$END"}}},
		},
	}, map[string]any{"type": "object"})
	id := w.start()
	require.NoError(t, w.Reader.Heads.SetFacts(t.Context(), id, heads.Facts{Imported: &heads.Imported{AtMs: 1, Confirmed: true}}))
	outs, err := w.DoTrusting(t.Context(), id, Work{Do: DoAnswer, Answer: &Answer{Value: map[string]any{}, At: w.head(id)}},
		func(context.Context, *UntrustedError) bool { return true })
	require.NoError(t, err)
	require.Len(t, outs, 2)
	require.True(t, outs[1].Done)
}
