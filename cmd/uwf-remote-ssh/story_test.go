//go:build sshd

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Two people hand over a thread with its files as in docs/share-threads.md, using only ssh: the programs are
// built as they are installed, and the far end has only uwf.
func TestRealSSHStory(t *testing.T) {
	t.Parallel()
	near, far, dir := programs(t), t.TempDir(), t.TempDir()
	for _, program := range []string{"uwf", "uwf-remote-ssh"} {
		_ = os.Remove(filepath.Join(near, program))
		out, err := exec.Command("go", "build", "-o", near+"/", "github.com/united-workforce/uwf/cmd/"+program).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	require.NoError(t, os.Symlink(filepath.Join(near, "uwf"), filepath.Join(far, "uwf")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "edit.yaml"), []byte(workflow), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "gitconfig"), []byte("[user]\n\tname = A\n\temail = a@example.com\n"), 0o600))
	cmd := exec.Command("sh", "-ec", story)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+near+":"+os.Getenv("PATH"), realConfig+"="+sshd(t, far), "HOME="+dir, "DIR="+dir,
		"GIT_CONFIG_GLOBAL="+filepath.Join(dir, "gitconfig"), "UWF_HOME=")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Logf("%s", out)
}

const workflow = `
name: edit
description: Edits, round after round.
roles:
  edit: { description: Edits., run: [sh, -c, 'echo "$UWF_ROUND" >>log; test $(wc -l <log) -ge 1000'] }
graph:
  $START: { _: edit }
  edit: { passed: $END, failed: edit }
`

const story = `
ann() { (cd $DIR/app; UWF_HOME=$DIR/ann uwf "$@"); }
bob() { (cd $DIR/clone; UWF_HOME=$DIR/bob uwf "$@"); }
mkdir app clone
for who in ann bob; do
	$who config set commands.sandbox.mode none
	$who remote add team far:$DIR/threads
done
rmdir clone
git -C app init -q
echo hello >app/a
git -C app add .
git -C app commit -q -m first
BEGUN=$(date +%s)
T=$(ann thread start ../edit.yaml -p x --format json | sed 's/.*"thread":"\([^"]*\)".*/\1/')

# Ann: two steps, and a push. Bob: a clone, a pull, a step, and a push.
ann thread step @ -c 2
ann push @ team
git clone -q app clone
bob remote list team
bob pull $T team
bob thread read $T >/dev/null
if bob thread step $T --cwd .; then exit 1; fi # nobody has said that its commands may run as Bob
bob thread trust $T --yes
bob thread step $T --cwd .
test ! -e clone/log
bob push $T team

# Ann has Bob's files, and goes on; Bob has it all on his branch.
test $(wc -l <app/log) = 2
ann pull @ team
ann thread apply @
test $(wc -l <app/log) = 3
ann thread trust @ --yes
ann thread step @ --remote team --cwd .
bob pull $T team
bob thread apply $T
test $(wc -l <clone/log) = 4
echo handed over and back in $(($(date +%s) - BEGUN)) s

# They trust each other's commands from now on. Both go on at once: each time at least one of them gets there, and there is one chain.
for who in ann bob; do
	$who remote remove team
	$who remote add --trust team far:$DIR/threads
done
for round in 1 2 3 4 5 6; do
	ann thread step @ --remote team --cwd . >/dev/null 2>>ann.log & a=$!
	bob thread step $T --remote team --cwd . >/dev/null 2>>bob.log & b=$!
	wait $a || test $? = 75 || test $? = 1
	wait $b || test $? = 75 || test $? = 1
done
ann pull @ team --discard
bob pull $T team --discard
test "$(ann thread steps @ --format json)" = "$(bob thread steps $T --format json)"
ann thread apply @ || :
n=$(ann thread steps @ --format json | grep -o '"role":"edit"' | wc -l)
echo $n steps, $(wc -l <app/log) lines
test $n -ge 5
test $n = $(wc -l <app/log)
ann cas fsck
bob cas fsck
UWF_HOME=$DIR/threads uwf cas fsck
`
