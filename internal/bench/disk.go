package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/united-workforce/uwf/internal/bench/sample"
)

const (
	writtenSteps = 100
	writtenForks = 20
	turnsPerStep = 6
)

// diskRows say how much room a thread takes, beside the same run written as others
// write it: one checkpoint per step, each with everything so far.
func (b *bench) diskRows() []row {
	once := func(r row) row { return r.in("kB").atMost(1) }
	what := fmt.Sprintf("a step of a thread of %d", writtenSteps)
	return []row{
		once(versus(what+", in blocks of 4 KiB", b.roomPerStep(inBlocks), 0, "a JSON checkpoint per step", b.checkpointPerStep(inBlocks))),
		once(versus(what+", bytes of content", b.roomPerStep(asItIs), 0, "a JSON checkpoint per step", b.checkpointPerStep(asItIs))),
		once(versus(fmt.Sprintf("each of %d forks of it, one step on", writtenForks), b.roomPerFork, 0, "one more checkpoint", b.checkpointPerFork)),
	}
}

// measure is how the room of a file is counted, in bytes.
type measure func(size int64) int64

func asItIs(size int64) int64   { return size }
func inBlocks(size int64) int64 { return (size + 4095) / 4096 * 4096 }

// written is a run with realistic turns, as it lies on the disk.
type written struct {
	place
	empty, whole map[string]int64 // sizes of the files before and after
	forked       map[string]int64 // and when all forks had made a step
}

// written makes the run, with uwf itself.
func (b *bench) written(ctx context.Context) (written, error) {
	return fixture(b, "a run with turns", func() (w written, err error) {
		script, err := b.file("turns.yaml", turnsYAML())
		if err != nil {
			return w, err
		}
		w.home = b.path("written")
		if w.thread, err = b.start(ctx, w.home); err != nil {
			return w, err
		}
		if w.empty, err = sizes(w.home); err != nil {
			return w, err
		}
		agent := b.program("uwf-mock") + " --mock-data " + script
		if _, err := b.uwf(ctx, w.home, "thread", "step", w.thread, "-c", fmt.Sprint(writtenSteps), "--agent", agent); err != nil {
			return w, err
		}
		if w.whole, err = sizes(w.home); err != nil {
			return w, err
		}
		for range writtenForks {
			fork, err := b.uwf(ctx, w.home, "thread", "fork", w.thread+"@-1", "--format", "text")
			if err != nil {
				return w, err
			}
			if _, err := b.uwf(ctx, w.home, "thread", "step", strings.Fields(fork)[0], "--agent", agent); err != nil {
				return w, err
			}
		}
		w.forked, err = sizes(w.home)
		return w, err
	})
}

// sizes are those of all files of a home but for what is kept about the last run
// of each thread.
func sizes(home string) (map[string]int64, error) {
	all := map[string]int64{}
	err := filepath.WalkDir(home, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && path == filepath.Join(home, "runs"):
			return fs.SkipDir
		case e.IsDir():
			return nil
		}
		info, err := e.Info()
		if err == nil {
			all[path] = info.Size()
		}
		return err
	})
	return all, err
}

// room is what was added, in kB.
func room(before, after map[string]int64, count measure) float64 {
	var sum int64
	for path, size := range after {
		sum += count(size) - count(before[path])
	}
	return float64(sum) / 1000
}

func (b *bench) roomPerStep(count measure) side {
	return func(ctx context.Context) (float64, error) {
		w, err := b.written(ctx)
		return room(w.empty, w.whole, count) / writtenSteps, err
	}
}

func (b *bench) roomPerFork(ctx context.Context) (float64, error) {
	w, err := b.written(ctx)
	return room(w.whole, w.forked, inBlocks) / writtenForks, err
}

// checkpointPerStep is what the same run takes if each step writes the whole state.
func (b *bench) checkpointPerStep(count measure) side {
	return func(context.Context) (float64, error) {
		var sum int64
		for n := range writtenSteps {
			size, err := checkpoint(n + 1)
			if err != nil {
				return 0, err
			}
			sum += count(size)
		}
		return float64(sum) / 1000 / writtenSteps, nil
	}
}

func (b *bench) checkpointPerFork(context.Context) (float64, error) {
	size, err := checkpoint(writtenSteps + 1)
	return float64(inBlocks(size)) / 1000, err
}

// checkpoint is the size of the state after n steps as JSON.
func checkpoint(n int) (int64, error) {
	var state []scriptedStep
	for i := range n {
		state = append(state, scripted(i))
	}
	text, err := json.Marshal(map[string]any{"workflow": "loop", "task": "task", "steps": state})
	return int64(len(text)), err
}

// scriptedStep is what happens in a step.
type scriptedStep struct {
	Role   string         `json:"role"`
	Output string         `json:"output"`
	Turns  []scriptedTurn `json:"turns"`
}

type scriptedTurn struct {
	Say    string            `json:"say,omitempty"`
	Tool   string            `json:"tool,omitempty"`
	Args   map[string]string `json:"args,omitempty"`
	Result string            `json:"result,omitempty"`
}

// scripted is the step with a number: some talk, and tools whose results are as
// long as the parts of files and the output of tests are.
func scripted(number int) scriptedStep {
	seed := uint64(number) * 100
	s := scriptedStep{Role: "worker", Output: fmt.Sprintf("---\n$status: again\nnote: step %d\n---\n%s", number, sample.Prose(seed, 800))}
	for i := range uint64(turnsPerStep) {
		turn := scriptedTurn{Say: sample.Prose(seed+10*i+1, 200)}
		if i%2 == 1 {
			turn = scriptedTurn{Tool: "read_file", Args: map[string]string{"path": fmt.Sprintf("src/file%d.go", number)}, Result: sample.Prose(seed+10*i+2, 3000)}
		}
		s.Turns = append(s.Turns, turn)
	}
	return s
}

// turnsYAML is the script of the run and of its forks; JSON is YAML.
func turnsYAML() string {
	var steps []scriptedStep
	for i := range writtenSteps + 1 {
		steps = append(steps, scripted(i))
	}
	text, _ := json.Marshal(map[string]any{"steps": steps}) // strings only
	return string(text)
}
