package corpus

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

var (
	built   = flag.String("bin", "", "directory of the programs to compare; default: they are built")
	suggest = flag.Bool("suggest", false, "append what differs to testdata/differences; write the reasons yourself")
	record  = flag.String("record", "", "make.sh only: record the story of this home, or of all")
)

// programs are the programs that the stories run.
var programs = []string{"uwf", "ocas", "uwf-mock", "uwf-remote-file"}

// install copies the programs to the paths at which they were when the homes were created.
func install(t *testing.T) {
	t.Helper()
	bin := filepath.Join(root, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if *built != "" {
		for _, name := range programs {
			from, err := filepath.Abs(filepath.Join(*built, name))
			if err == nil {
				err = os.Symlink(from, filepath.Join(bin, name))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		return
	}
	args := []string{"build", "-o", bin + "/"}
	for _, name := range programs {
		args = append(args, "../../cmd/"+name)
	}
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// TestCorpus plays the story of every home with the programs of the tree, and compares their output with that
// of the earlier version.
func TestCorpus(t *testing.T) {
	if *record != "" {
		t.Skip("recording")
	}
	all, err := loadRules()
	if err != nil {
		t.Fatal(err)
	}
	occupy(t)
	install(t)
	homes, err := filepath.Glob("testdata/homes/*.tar.gz")
	if err != nil || len(homes) == 0 {
		t.Fatalf("there are no homes: %v", err)
	}
	var mu sync.Mutex
	var found []difference
	complete := true
	t.Run("homes", func(t *testing.T) {
		for _, archive := range homes {
			name := strings.TrimSuffix(filepath.Base(archive), ".tar.gz")
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				differences := play(t, all, name)
				mu.Lock()
				defer mu.Unlock()
				found = append(found, differences...)
				complete = complete && !t.Failed()
			})
		}
	})
	report(t, found)
	if f := flag.Lookup("test.run"); f.Value.String() != "" && strings.Contains(f.Value.String(), "/") || !complete {
		return // only with all homes is it known which rules are needed
	}
	for _, line := range all.unused() {
		t.Error(line)
	}
}

// play runs one home's story.
func play(t *testing.T, all *rules, name string) []difference {
	if err := unpack("testdata/homes/"+name+".tar.gz", all.file); err != nil {
		t.Fatal(err)
	}
	s, err := newStory(name)
	if err != nil {
		t.Fatal(err)
	}
	c := &comparison{home: name, rules: all, named: map[string]string{}}
	seen := map[string]int{}
	for _, r := range expected(t, name) {
		line, ok := all.command(r.Run)
		if !ok {
			continue
		}
		seen[r.Run]++
		if c.command = r.Run; seen[r.Run] > 1 {
			c.command += fmt.Sprintf(" #%d", seen[r.Run])
		}
		got, err := s.run(t.Context(), r, line)
		if err != nil {
			t.Fatal(err)
		}
		c.value("", r.Got, got)
		s.remember(r, got)
	}
	return c.found
}

// expected reads the results of the earlier version, one command per line.
func expected(t *testing.T, name string) []result {
	t.Helper()
	text, err := os.ReadFile("testdata/expected/" + name + ".jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var all []result
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		d := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		d.UseNumber()
		var r result
		if err := d.Decode(&r); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all = append(all, r)
	}
	return all
}

// report fails for unlisted differences and prints the lines that would list them.
func report(t *testing.T, found []difference) {
	if len(found) == 0 {
		return
	}
	var lines strings.Builder
	for _, d := range found {
		lines.WriteString(d.line() + "\n")
	}
	t.Errorf("the programs print something else than before. If an issue wants that, add to testdata/differences,\n"+
		"below a line 'reason: …' (-suggest does it, all but the reason; README.md has shorter forms):\n%s", lines.String())
	for _, d := range found {
		t.Logf("%s: %s: %s\n\twas %s\n\tis  %s", d.home, d.command, d.path, whole(d.was), whole(d.is))
	}
	if !*suggest {
		return
	}
	f, err := os.OpenFile("testdata/differences", os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if _, err := fmt.Fprintf(f, "\nreason: TODO\n%s", lines.String()); err != nil {
		t.Fatal(err)
	}
}

func whole(v any) string {
	if v == (absent{}) {
		return "not there"
	}
	text, _ := json.Marshal(v)
	if len(text) > 2000 {
		return string(text[:2000]) + "…"
	}
	return string(text)
}

// frozen is the checksum of the homes and the recorded outputs. It never changes: accepted differences are
// listed in testdata/differences.
const frozen = "d8f710b027a95fa72e4c6ccf5cc57ebb133880dc203a4aa60f049c8ba77022d0"

// TestFrozen checks that the homes and the recorded outputs are unchanged.
func TestFrozen(t *testing.T) {
	t.Parallel()
	sum := sha256.New()
	for _, dir := range []string{"testdata/homes", "testdata/expected"} {
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			fmt.Fprintf(sum, "%s %x\n", filepath.ToSlash(path), sha256.Sum256(text))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := fmt.Sprintf("%x", sum.Sum(nil)); got != frozen {
		t.Errorf("the frozen part of the corpus was changed: its checksum is %s", got)
	}
}
