package bench

import "testing"

const workers = 100

// BenchmarkEmpty is a message through an empty task. cpu-ns/op counts the time of all cores, which a busy machine does not change.
func BenchmarkEmpty(b *testing.B) {
	benchmark(b, Loads(), func(*Message) {})
}

// BenchmarkDeepStack is a task that needs 16 KB of stack: a goroutine of its own for each message grows its stack each time.
func BenchmarkDeepStack(b *testing.B) {
	benchmark(b, Loads()[3:4], func(m *Message) { deep(m.Number) })
}

//go:noinline
func deep(n int) byte {
	var space [16 << 10]byte
	space[n%len(space)] = byte(n)
	return space[(n*7)%len(space)]
}

func benchmark(b *testing.B, loads []Load, task func(*Message)) {
	for _, l := range loads {
		for _, d := range Designs() {
			b.Run("keys="+l.Name+"/design="+d.Name, func(b *testing.B) {
				b.ReportAllocs()
				before := cpuTime()
				d.Run(l.Messages, b.N, workers, task)
				b.ReportMetric(float64(cpuTime()-before)/float64(b.N), "cpu-ns/op")
			})
		}
	}
}
