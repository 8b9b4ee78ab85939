package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
)

// writeTable prints the results beside the published figures.
func writeTable(w io.Writer, results []result) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "test\tpattern\tmessages\telapsed\tideal\tmsg/s\tefficiency\tpublished\tordered\t")
	for _, r := range results {
		published := "-"
		if r.publishedRate > 0 {
			published = fmt.Sprintf("%.0f/s = %.2f", r.publishedRate, r.publishedEfficiency)
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%.2f s\t%.2f s\t%.0f\t%.3f\t%s\t%t\t\n", r.Test, r.Pattern, r.Messages, r.ElapsedMS/1000, r.IdealMS/1000,
			float64(r.Messages)/r.ElapsedMS*1000, r.Efficiency, published, r.Ordered)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, "\nefficiency: ceil(messages/workers) x the task as long as it really lasted on average, over the elapsed time.\n"+
		"published: the Java original with 250 ms tasks and 100 threads, its queue filled while it was read.")
	return err
}

// The chart's measures, in pixels.
const (
	chartLeft, chartTop = 60, 50
	barWidth, barHeight = 22, 300
	groupGap            = 34
)

var colours = map[pattern][2]string{ // ours, published
	grouped: {"#1f77b4", "#aec7e8"}, interleaved: {"#2ca02c", "#98df8a"}, unordered: {"#7f7f7f", "#c7c7c7"},
}

// writeChart draws the efficiency of every test and pattern, with the published one as a pale bar beside it.
func writeChart(file string, results []result) (err error) {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := f.Close(); err == nil {
			err = closeErr
		}
	}()
	w := bufio.NewWriter(f)
	drawn, workers := 0, 0
	for _, r := range results {
		if r.Pattern != sequential {
			drawn, workers = drawn+1, r.Workers
		}
	}
	width := chartLeft + drawn*(2*barWidth+8) + len(tests)*groupGap + 40
	fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n", width, chartTop+barHeight+80)
	fmt.Fprintf(w, `<rect width="100%%" height="100%%" fill="white"/><text x="%d" y="20" font-size="15">Efficiency: 1 is %d workers always busy. Dark: keyseq. Pale: the Java original, published.</text>`+"\n", chartLeft, workers)
	for i := 0; i <= 4; i++ {
		y := chartTop + barHeight - i*barHeight/4
		fmt.Fprintf(w, `<line x1="%d" x2="%d" y1="%d" y2="%d" stroke="#ddd"/><text x="%d" y="%d" text-anchor="end">%.2f</text>`+"\n", chartLeft, width-20, y, y, chartLeft-6, y+4, float64(i)/4)
	}
	x, last := chartLeft+10, ""
	for _, r := range results {
		if r.Pattern == sequential {
			continue
		}
		if last != "" && last != r.Test {
			x += groupGap
		}
		if last != r.Test {
			fmt.Fprintf(w, `<text x="%d" y="%d" font-size="14">%s</text>`+"\n", x, chartTop+barHeight+44, r.Test)
		}
		last = r.Test
		bar(w, x, r.Efficiency, colours[r.Pattern][0])
		bar(w, x+barWidth, r.publishedEfficiency, colours[r.Pattern][1])
		fmt.Fprintf(w, `<text x="%d" y="%d" font-size="10">%.2f</text><text x="%d" y="%d" font-size="10" transform="rotate(20 %d %d)">%s</text>`+"\n",
			x, chartTop+barHeight-int(r.Efficiency*barHeight)-4, r.Efficiency, x, chartTop+barHeight+14, x, chartTop+barHeight+14, r.Pattern)
		x += 2*barWidth + 8
	}
	fmt.Fprintln(w, "</svg>")
	return w.Flush()
}

func bar(w io.Writer, x int, value float64, colour string) {
	h := int(min(value, 1.1) * barHeight)
	fmt.Fprintf(w, `<rect x="%d" y="%d" width="%d" height="%d" fill="%s"/>`+"\n", x, chartTop+barHeight-h, barWidth, h, colour)
}
