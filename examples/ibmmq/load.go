package main

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/ibm-messaging/mq-golang-jms20/jms20subset"
	"github.com/ibm-messaging/mq-golang-jms20/mqjms"

	"github.com/keyseq/keyseq/orderaudit"
)

// connection is how both parts reach the queue manager; the defaults are those of compose.yaml.
func connection() (mqjms.ConnectionFactoryImpl, error) {
	host, port, _ := strings.Cut(strings.TrimSuffix(cmp.Or(os.Getenv("MQ_CONNECTIONS"), "127.0.0.1(1414)"), ")"), "(")
	number, err := strconv.Atoi(port)
	if err != nil {
		return mqjms.ConnectionFactoryImpl{}, fmt.Errorf("MQ_CONNECTIONS: write host(port), as in 127.0.0.1(1414): %w", err)
	}
	return mqjms.ConnectionFactoryImpl{
		QMName: cmp.Or(os.Getenv("MQ_QUEUE_MANAGER"), "QM1"), Hostname: host, PortNumber: number,
		ChannelName: cmp.Or(os.Getenv("MQ_CHANNEL"), "DEV.APP.SVRCONN"),
		UserName:    cmp.Or(os.Getenv("MQ_USER"), "app"), Password: cmp.Or(os.Getenv("MQ_PASSWORD"), "passw0rd"),
		ApplName: "keyseq example",
	}, nil
}

// load puts the payments of all accounts on the queue, interleaved, in one unit of work for each round.
func load(audit *orderaudit.Recorder) error {
	cf, err := connection()
	if err != nil {
		return err
	}
	ctx, ex := cf.CreateContextWithSessionMode(jms20subset.JMSContextSESSIONTRANSACTED)
	if ex != nil {
		return fmt.Errorf("no queue manager (docker compose up -d --wait starts one): %w", ex)
	}
	defer ctx.Close()
	producer, to := ctx.CreateProducer(), ctx.CreateQueue(queue)
	for n := range payments {
		for k := range accounts {
			account := fmt.Sprintf("account-%03d", k)
			m := ctx.CreateTextMessageWithString(fmt.Sprintf("payment %d of %s", n, account))
			if ex := m.SetStringProperty("account", &account); ex != nil {
				return ex
			}
			if ex := m.SetIntProperty("number", n); ex != nil {
				return ex
			}
			if ex := producer.Send(to, m); ex != nil {
				return ex
			}
		}
		if ex := ctx.Commit(); ex != nil {
			return ex
		}
		for k := range accounts {
			if audit != nil {
				audit.Sent(fmt.Sprintf("account-%03d", k), int64(n))
			}
		}
	}
	fmt.Printf("loaded %d payments of %d accounts\n", payments*accounts, accounts)
	return nil
}
