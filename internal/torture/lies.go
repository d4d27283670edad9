package main

// lie is an agent, as a shell script, and the expected result of its step. In the script $HEAD is the step to
// follow, $OTHER a step of another thread, $COUSIN the step that follows the one beside the head in a fork,
// $CAS the store, agent our own honest agent, and uwf the program.
type lie struct {
	name, script string
	flags        []string
	code         int
	or           int    // alternative status, depending on timing; 0 if none
	says         string // substring of the error
	// breaks is what the script damages: files of the home, as a pattern, or the node of the head. It is restored before the
	// thread has to continue.
	breaks string
	// escapes means that a leftover process has detached itself deliberately and survives.
	escapes bool
	// first means that the thread has no step yet.
	first bool
}

// lies lists what agents can print, return, write or leave behind.
func lies() []lie {
	var all []lie
	for _, some := range [][]lie{printed(), returned(), named(), left(), written()} {
		all = append(all, some...)
	}
	return all
}

// soon makes an endless agent time out.
func soon() []string { return []string{"--timeout", "1s"} }

// printed lists what agents can write to their streams.
func printed() []lie {
	return []lie{
		{name: "prints noise", script: "head -c 100000 /dev/urandom", code: exitAgent, says: "did not print a step result"},
		{name: "prints half a result", script: `agent | head -c 40`, code: exitAgent, says: "did not print a step result"},
		{name: "prints JSON of another kind", script: `echo '[[[[[[]]]]]]'`, code: exitAgent, says: "did not print a step result"},
		{name: "prints NULs", script: `head -c 1000 /dev/zero; exit 0`, code: exitAgent, says: "did not print a step result"},
		{name: "prints NULs, then works", script: `head -c 1000 /dev/zero; agent`},
		{name: "prints what is no UTF-8, then works", script: `printf '\377\376\300 x\n'; agent`},
		{name: "fails with what is no UTF-8", script: `printf '\377\376\0 why\n' >&2; exit 1`, code: exitAgent, says: "why"},
		{name: "prints its result twice", script: `agent > out; cat out out`},
		{name: "prints the results of two runs", script: `agent; agent`},
		{name: "prints one endless line", script: `head -c "$FLOOD" /dev/zero | tr '\0' x`, code: exitAgent, says: "did not print a step result"},
		{name: "prints one endless line, then works", script: `head -c "$FLOOD" /dev/zero | tr '\0' x; agent`},
		{name: "prints an endless result", script: `printf '{"stepHash":"'; head -c "$FLOOD" /dev/zero | tr '\0' A; printf '"}'`, code: exitAgent, says: "did not print a step result"},
		{name: "writes much to stderr", script: `head -c "$FLOOD" /dev/zero >&2; exit 1`, code: exitAgent},
		{name: "writes much to stdout", script: `yes x | head -c "$FLOOD"; exit 1`, code: exitAgent},
		{name: "writes much, then works", script: `head -c "$FLOOD" /dev/zero >&2; yes | head -c "$FLOOD"; agent`},
		{name: "closes its streams", script: "exec >&- 2>&-; exit 0", code: exitAgent, says: "did not print a step result"},
		{name: "closes its streams after its work", script: "agent; exec >&- 2>&-; exit 0"},
	}
}

// returned lists how agents can end.
func returned() []lie {
	return []lie{
		{name: "says nothing", script: "exit 0", code: exitAgent, says: "did not print a step result"},
		{name: "fails", script: "echo why >&2; exit 3", code: exitAgent, says: "why"},
		{name: "does its work and fails", script: "agent; exit 3", code: exitAgent, says: "exit status 3"},
		{name: "does its work and is killed", script: "agent; kill -9 $$", code: exitAgent, says: "killed"},
		{name: "stops itself", script: "kill -STOP $$; agent", flags: soon(), code: exitTimeout},
		{name: "stops itself after its work", script: "agent; kill -STOP $$", flags: soon(), code: exitTimeout, says: "use its result"},
		{name: "hangs", script: "sleep 1000", flags: soon(), code: exitTimeout},
		{name: "ignores signals", script: "trap '' INT TERM HUP; while :; do sleep 1; done", flags: soon(), code: exitTimeout},
		{name: "kills itself", script: "kill -9 $$", code: exitAgent, says: "killed"},
		{name: "kills its whole group", script: "kill -9 0", code: exitAgent, says: "killed"},
	}
}

// named lists the steps that agents can claim to have made.
func named() []lie {
	return []lie{
		{name: "names the head itself", script: `echo "$HEAD"`, code: exitAgent, says: "does not follow the head"},
		{name: "names a step of another thread", script: `echo "$OTHER"`, code: exitAgent, says: "was rejected"},
		{name: "names the first step of another thread as its first", script: `echo "$OTHER"`, code: exitAgent, says: "belongs to another thread", first: true},
		{name: "names a step of a fork", script: `echo "$COUSIN"`, code: exitAgent, says: "does not follow the head"},
		{name: "names a node that is not there", script: "echo 0000000000000", code: exitAgent, says: "0000000000000"},
		{name: "names a node that is no step", script: `uwf cas put-text lie | cut -d'"' -f4`, code: exitAgent, says: "is not a step"},
		{name: "names something that is no hash", script: `echo '{"stepHash":"../../etc/passwd"}'`, code: exitAgent},
		{name: "names a number", script: `echo '{"stepHash":12}'`, code: exitAgent},
	}
}

// left lists what agents can leave behind.
func left() []lie {
	return []lie{
		{name: "leaves a child", script: "sleep 1000 & agent"},
		{name: "leaves a child and nothing else", script: "sleep 1000 & exit 0", code: exitAgent, says: "did not print a step result"},
		{name: "leaves a grandchild that ignores signals", script: "(trap '' INT TERM HUP; sleep 1000 & sleep 1000) & agent"},
		{name: "leaves a child that is stopped", script: "sleep 1000 & kill -STOP $!; agent"},
		{name: "leaves a zombie", script: `sleep 0 & exec "$AGENT" agent "$1" "$2" "$3" "$4"`},
		{name: "leaves a daemon", script: "setsid sleep 1000 >/dev/null 2>&1 & agent", escapes: true},
		{name: "leaves a daemon with its streams and its lock", script: "setsid sleep 1000 & agent", escapes: true},
		{name: "fails and leaves a daemon", script: "setsid sleep 1000 & exit 1", code: exitAgent, escapes: true},
	}
}

// written lists what agents can do to the files of the home.
func written() []lie {
	return []lie{
		{name: "makes its run directory useless", script: `rm -rf "$UWF_RUN_DIR"/*; echo x > "$UWF_RUN_DIR/run.json"; exit 1`, code: exitAgent},
		{name: "removes its run directory", script: `rm -rf "$UWF_RUN_DIR"; agent`, code: exitAgent, or: 1, says: "run"},
		{name: "puts a pipe in the place of its stdout", script: `agent; rm "$UWF_RUN_DIR/stdout"; mkfifo "$UWF_RUN_DIR/stdout"`, code: exitAgent, says: "pipe"},
		{name: "puts pipes in the place of all its files", script: `cd "$UWF_RUN_DIR"; for f in *; do rm "$f"; mkfifo "$f"; done; exit 1`, code: exitAgent},
		{name: "puts directories in the place of all its files", script: `cd "$UWF_RUN_DIR"; for f in *; do rm "$f"; mkdir -p "$f/x"; done; exit 1`, code: exitAgent},
		{name: "puts a link to the home in the place of its run directory", script: `rm -rf "$UWF_RUN_DIR"; ln -s "$UWF_HOME" "$UWF_RUN_DIR"; exit 1`, code: exitAgent},
		{name: "puts a file in the place of its run directory", script: `rm -rf "$UWF_RUN_DIR"; echo x > "$UWF_RUN_DIR"; exit 1`, code: exitAgent},
		{name: "makes its stdout longer than any disk", script: `truncate -s 200G "$UWF_RUN_DIR/stdout"`, code: exitAgent, says: "did not print a step result"},
		{name: "announces what is not there, again and again", script: `yes '{"uwf":"turn","hash":"0123456789ABC"}' | head -c "$FLOOD"`, code: exitAgent, says: "did not print a step result"},
		{name: "removes the node of the head", script: `uwf cas fsck --evict "$HEAD" >&2; agent`, code: exitAgent, breaks: "$HEAD"},
		{name: "works, then removes the node of the head", script: `agent; uwf cas fsck --evict "$HEAD" >&2`, code: exitCorrupt, breaks: "$HEAD"},
		{name: "rewrites the log", script: `for f in "$CAS"/log/*.seg; do echo x > "$f"; done; agent`, code: exitAgent, breaks: "cas/log/*"},
		{name: "works, then removes its own step", script: `agent > out; cat out; h=$(tail -n 1 out | cut -d'"' -f4); uwf cas fsck --evict "$h" >&2`, code: exitAgent},
		{name: "forgets all heads", script: `: > "$UWF_HOME/threads.yaml"; agent`, code: exitLocked, says: "is not active", breaks: "threads.yaml"},
		{name: "moves the head itself", script: `sed -i "s/$HEAD/$OTHER/" "$UWF_HOME/threads.yaml"; agent`, code: exitLocked, says: "moved", breaks: "threads.yaml"},
		{name: "damages the config", script: `echo 'timeout: [' > "$UWF_HOME/config.yaml"; agent`, breaks: "config.yaml"},
		{name: "steps the thread itself", script: `uwf thread step "$1" >&2; test $? = 75 && agent`},
		{name: "ends the thread itself", script: `uwf thread kill "$1" >&2; agent`, code: exitStopped, says: "was stopped"},
		{name: "forks its own step", script: `uwf thread fork "$HEAD" >&2 && agent`},
	}
}
