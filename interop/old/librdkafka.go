package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

type librdkafka struct{}

func (librdkafka) version() string {
	_, text := kafka.LibraryVersion()
	return text
}

func (librdkafka) config(w way) *kafka.ConfigMap {
	config := kafka.ConfigMap{
		"bootstrap.servers": w.addr(), "log_level": 0, "security.protocol": w.listener,
		"sasl.mechanism": w.mechanism, "sasl.username": user, "sasl.password": w.password,
	}
	if w.tls() {
		config["ssl.ca.location"] = authority()
	}
	return &config
}

func (c librdkafka) produce(w way, topic string, values []string) error {
	p, err := kafka.NewProducer(c.config(w))
	if err != nil {
		return err
	}
	defer p.Close()
	for _, v := range values {
		m := &kafka.Message{TopicPartition: kafka.TopicPartition{Topic: &topic}, Value: []byte(v)}
		if err := p.Produce(m, nil); err != nil {
			return err
		}
	}
	late := time.After(patience)
	for told := 0; told < len(values); {
		select {
		case e := <-p.Events():
			switch e := e.(type) {
			case *kafka.Message:
				if e.TopicPartition.Error != nil {
					return e.TopicPartition.Error
				}
				told++
			case kafka.Error:
				if e.Code() == kafka.ErrAuthentication {
					return e
				}
			}
		case <-late:
			return fmt.Errorf("%d of %d records are acknowledged after %s", told, len(values), patience)
		}
	}
	return nil
}

func (c librdkafka) consume(w way, topic string, n int) (values []string, err error) {
	config := c.config(w)
	_ = config.SetKey("group.id", topic)
	_ = config.SetKey("auto.offset.reset", "earliest")
	consumer, err := kafka.NewConsumer(config)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, consumer.Close()) }()
	if err := consumer.Subscribe(topic, nil); err != nil {
		return nil, err
	}
	for end := time.Now().Add(patience); len(values) < n && time.Now().Before(end); {
		switch e := consumer.Poll(100).(type) {
		case *kafka.Message:
			values = append(values, string(e.Value))
		case kafka.Error:
			if e.Code() == kafka.ErrAuthentication {
				return nil, e
			}
		}
	}
	_, err = consumer.Commit()
	return values, err
}

func (librdkafka) refused(err error) bool {
	var told kafka.Error
	return errors.As(err, &told) && told.Code() == kafka.ErrAuthentication
}
